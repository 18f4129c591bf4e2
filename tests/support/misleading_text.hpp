#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom::test {

/// The UTF-8 of a character of the first 65,536.
inline std::string utf8_of(char32_t point) {
  const auto low = [&](unsigned shift) { return static_cast<char>(0x80U | (point >> shift & 0x3FU)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0U | point >> 6U), low(0)};
  return {static_cast<char>(0xE0U | point >> 12U), low(6), low(0)};
}

/// What steers a terminal, ends a line, turns the direction of text around or cannot be seen; all of ASCII
/// and all beyond it.
inline std::vector<std::string> misleading_characters() {
  std::vector<std::string> characters;
  const auto add = [&](char32_t first, char32_t last) {
    for (auto point = first; point <= last; ++point)
      characters.push_back(utf8_of(point));
  };
  add(0x01, 0x1F);
  add(0x7F, 0x9F);
  add(0x061C, 0x061C);
  add(0x200B, 0x200F);
  add(0x2028, 0x202E);
  add(0x2060, 0x206F);
  add(0xFEFF, 0xFEFF);
  add(0xFFF9, 0xFFFB);
  return characters;
}

/// The first of those in an output, but for the ends of its lines and tabulators; empty if there is none.
inline std::string found_misleading(std::string_view output) {
  for (const auto& character : misleading_characters()) {
    if (character == "\n" || character == "\t") continue;
    if (output.find(character) != std::string_view::npos) return character;
  }
  return {};
}

}  // namespace mailroom::test
