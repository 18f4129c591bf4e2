// Parts, lists and numbers of texts, and formatting. What fmt and its ranges would compile in each file that
// formats into a string or joins is compiled here.
#pragma once

#include <charconv>
#include <fmt/format.h>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mailroom {

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

/// The parts of `text` between the separators: one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// `text` without the white space around it.
std::string_view trimmed(std::string_view text);

/// `text` with the letters of ASCII in lower case.
std::string lower_case(std::string_view text);

/// True of 8-4-4-4-12 hexadecimal digits, in any case.
bool is_uuid(std::string_view text);

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

/// The number that all of `text` spells, in decimal; nullopt for anything else and out of range.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  return failure == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

}  // namespace mailroom
