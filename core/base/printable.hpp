// Makes foreign text safe for a terminal, a log and JSON, and keeps mailroom's own within the locale.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace mailroom {

inline bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/// Length of the well-formed UTF-8 sequence at the front of `text`, which is not empty; 0 if there is none.
/// The ranges are from table 3-7 of the Unicode standard.
inline std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const auto second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second > 0x9F;
  const bool beyond = first == 0xF4 && second > 0x8F;
  return overlong || surrogate || beyond ? 0 : length;
}

/// The code point at the front of `text`, whose sequence has `length` bytes.
inline char32_t code_point(std::string_view text, std::size_t length) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (length == 1) return first;
  char32_t point = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i)
    point = (point << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  return point;
}

struct PointRange {
  char32_t first;
  char32_t last;
};

template <std::size_t count>
bool is_in(const std::array<PointRange, count>& ranges, char32_t point) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const auto& range) { return range.first <= point && point <= range.last; });
}

/// True if the locale's charset is UTF-8, by the first of LC_ALL, LC_CTYPE and LANG that is set; false if
/// none is set (the C locale). Applies to mailroom's own text; data is shown as it is.
bool shows_utf8();

/// Marks omitted text: `…` (one column), or `...` if the locale is not UTF-8.
std::string_view ellipsis();

inline bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// True for well-formed UTF-8, control characters included.
bool is_utf8(std::string_view text);

/// `text` with U+FFFD for each byte of invalid UTF-8.
std::string sound_utf8(std::string_view text);

/// True for well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates) without ASCII control characters
/// (U+0000 to U+001F, U+007F): text that a line of output may contain.
bool is_printable(std::string_view text);

/// `text` with a question mark for each character that could control a terminal, end a line, change the
/// direction of text or be invisible (U+0000 to U+001F, U+007F to U+009F, U+061C, U+200B to U+200F, U+2028 to
/// U+202E, U+2060 to U+206F, U+FEFF, U+FFF9 to U+FFFB), and for each byte of invalid UTF-8.
std::string printable(std::string_view text);

/// As printable(), for a whole output: keeps newlines, tabs and colours.
std::string printable_lines(std::string_view text);

/// Foreign text, safe to show in a message: printable(), cut to 1,000 columns.
std::string shown_text(std::string_view text);

/// `json` with `\uXXXX` for the characters that printable() replaces; the value stays the same.
std::string escaped_json(std::string json);

}  // namespace mailroom
