// Text: columns, wrapping, numbers and spelling suggestions for people; digits and escapes for programs. What
// fmt and its ranges would compile in each file that formats into a string or joins is compiled here.
#pragma once

#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/printable.hpp"

namespace mailroom {

/// One column per value, from ▁ for zero to █ for the largest; a space for a missing value. Values must not
/// be negative.
std::string sparkline(const std::vector<std::optional<double>>& values);

/// The largest of `values`; 0 if there is none.
double largest(const std::vector<std::optional<double>>& values);

/// What append_format() does, once for all types of values.
void append_formatted(std::string& text, fmt::string_view format, fmt::format_args values);

/// Appends `values` to `text` in the way of fmt::format().
template <typename... Values>
void append_format(std::string& text, fmt::format_string<Values...> format, const Values&... values) {
  append_formatted(text, format, fmt::make_format_args(values...));
}

/// The values of a range, which are texts or whole numbers, with `separator` between them.
template <typename Range>
std::string joined(const Range& values, std::string_view separator = " ") {
  std::string text;
  bool is_first = true;
  for (const auto& value : values) {
    if (!std::exchange(is_first, false)) text += separator;
    if constexpr (std::is_convertible_v<decltype(value), std::string_view>) {
      text += value;
    } else {
      text += std::to_string(value);
    }
  }
  return text;
}

/// Two hexadecimal digits for each byte, in lower case.
std::string hex_text(std::span<const std::uint8_t> bytes);
std::string hex_text(std::string_view bytes);

/// What a hexadecimal digit, in lower or upper case, stands for; -1 for any other character.
constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const auto lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// `text` with `mark` and two hexadecimal digits, `%2F`, for each byte that is neither a letter nor a digit
/// of ASCII nor one of `also`: by default as RFC 3986 writes a part of a URI.
std::string percent_encoded(std::string_view text, std::string_view also = "-._~", char mark = '%');

/// The parts of `text` between the separators: one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// `text` without the white space around it.
std::string_view trimmed(std::string_view text);

/// `text` with the letters of ASCII in lower case.
std::string lower_case(std::string_view text);

/// True if `text` is one of `words`.
bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words);

/// True if `part`, in lower case, is in `text`, in any case of ASCII.
bool holds_in_any_case(std::string_view text, std::string_view part);

/// Counts lines on the way through a text.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text) : text_(text), next_end_(text.find('\n')) {}

  /// The line of the byte at `position`, from 1; not before that of the last call.
  std::size_t line_of(std::size_t position) {
    for (; next_end_ < position; next_end_ = text_.find('\n', next_end_ + 1))
      ++line_;
    return line_;
  }

 private:
  std::string_view text_;
  std::size_t next_end_;  ///< of the line that was told last
  std::size_t line_ = 1;
};

/// The line of the byte at `position` of `text`, from 1.
inline std::size_t line_of(std::string_view text, std::size_t position) {
  return LineCounter(text).line_of(position);
}

/// The first `longest` bytes of `text`, with `_` for each that is neither a letter nor a digit of ASCII nor
/// one of `also`: the tag of a mail, as a provider takes it.
std::string tag_text(std::string_view text, std::string_view also, std::size_t longest);

/// The number that all of `text` spells, in decimal; nullopt for anything else and out of range.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  return failure == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

/// The candidate with the smallest edit distance to `word`; empty if none is within half the length of
/// `word`.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// Columns that `text` takes on a terminal: two for East Asian wide characters and emoji, none for common
/// combining characters, one for all others and for each byte of invalid UTF-8.
std::size_t display_width(std::string_view text);

/// `text` cut to `width` columns; ends in an ellipsis if it was cut.
std::string fit(std::string_view text, std::size_t width);

/// Wraps `text` into lines of at most `width` columns. `taken` columns of the first line are in use already;
/// further lines are indented by `indent` spaces. A longer word gets its own line. `width` 0 means one line.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent, std::size_t taken = 0);

/// `text` with each line longer than `width` wrapped, keeping the line's indent. `width` 0 changes nothing.
std::string folded(std::string_view text, std::size_t width);

/// Hides most of an address or login: `a***@mail.example`, `a***`.
std::string masked_address(std::string_view address);

/// Quotes `text` for a shell if needed.
std::string shell_word(const std::string& text);

/// 1234567 as `1,234,567`.
std::string with_thousands(std::int64_t number);

/// `1 token`, `1,234 tokens`
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace mailroom
