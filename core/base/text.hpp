// Text for people: columns, wrapping, numbers and spelling suggestions.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"

namespace mailroom {

/// One column per value, from ▁ for zero to █ for the largest; a space for a missing value. Values must not
/// be negative.
std::string sparkline(const std::vector<std::optional<double>>& values);

/// The largest of `values`; 0 if there is none.
double largest(const std::vector<std::optional<double>>& values);

/// The parts of `text` between the separators: one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// `text` without the white space around it.
std::string_view trimmed(std::string_view text);

/// `text` with the letters of ASCII in lower case.
std::string lower_case(std::string_view text);

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
