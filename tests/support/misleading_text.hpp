#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom::test {

/// Encodes a code point below 65,536 as UTF-8.
inline std::string utf8_of(char32_t point) {
  const auto low = [&](unsigned shift) { return static_cast<char>(0x80U | (point >> shift & 0x3FU)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0U | point >> 6U), low(0)};
  return {static_cast<char>(0xE0U | point >> 12U), low(6), low(0)};
}

/// All characters, ASCII and beyond, that control a terminal, end a line, change the text direction or are
/// invisible.
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

/// Returns the first such character in an output, except newlines and tabs; empty if there is none.
inline std::string found_misleading(std::string_view output) {
  for (const auto& character : misleading_characters()) {
    if (character == "\n" || character == "\t") continue;
    if (output.find(character) != std::string_view::npos) return character;
  }
  return {};
}

}  // namespace mailroom::test
