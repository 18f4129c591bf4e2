// Widths from Unicode blocks.

#include "base/terminal_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "base/printable.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

/// `wide` and `combining` list the blocks in which all or nearly all characters are wide or combining.
std::size_t columns_of(char32_t point) {
  constexpr std::array<PointRange, 9> wide{{{0x1100, 0x115F},
                                            {0x2E80, 0x303E},
                                            {0x3041, 0xA4CF},
                                            {0xAC00, 0xD7A3},
                                            {0xF900, 0xFAFF},
                                            {0xFE30, 0xFE6F},
                                            {0xFF00, 0xFF60},
                                            {0x1F300, 0x1FAFF},
                                            {0x20000, 0x3FFFD}}};
  constexpr std::array<PointRange, 4> combining{
      {{0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}}};
  if (point < 0x0300) return 1;
  return is_in(combining, point) ? 0 : is_in(wide, point) ? 2 : 1;
}

/// Removes the first character of `text` and returns its columns.
std::size_t take_character(std::string_view& text) {
  const auto length = sequence_length(text);
  const auto columns = length == 0 ? 1 : columns_of(code_point(text, length));
  text.remove_prefix(std::max<std::size_t>(length, 1));
  return columns;
}

constexpr std::size_t bars_count = 8;
using Bars = std::array<std::string_view, bars_count>;
constexpr Bars blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr Bars ascii_blocks{"_", ".", ":", "-", "=", "+", "*", "#"};

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty())
    width += take_character(text);
  return width;
}

std::string fit(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  const auto mark = ellipsis();
  if (width < display_width(mark)) return std::string(width, '.');
  const auto room = width - display_width(mark);
  auto rest = text;
  for (std::size_t used = 0; used <= room;) {
    auto after = rest;
    used += take_character(after);
    if (used <= room) rest = after;
  }
  return std::string(text.substr(0, text.size() - rest.size())).append(mark);
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent, std::size_t taken) {
  std::string result;
  auto column = taken;
  bool at_start = true;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const auto size = display_width(word);
    if (!at_start && width > 0 && column + 1 + size > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!at_start) {
      result += ' ';
      ++column;
    }
    at_start = false;
    result += word;
    column += size;
  }
  return result;
}

std::string folded(std::string_view text, std::size_t width) {
  if (width == 0) return std::string(text);
  std::vector<std::string> lines;
  for (const auto line : split(text, '\n')) {
    const auto indent = std::min(line.find_first_not_of(' '), line.size());
    lines.push_back(display_width(line) > width
                        ? std::string(indent, ' ') + wrapped(line, width, indent, indent)
                        : std::string(line));
  }
  return joined(lines, "\n");
}

double largest(const std::vector<std::optional<double>>& values) {
  double most = 0;
  for (const auto& value : values)
    most = std::max(most, value.value_or(0));
  return most;
}

std::string sparkline(const std::vector<std::optional<double>>& values) {
  const auto& bars = shows_utf8() ? blocks : ascii_blocks;
  constexpr double highest = bars_count - 1;
  const double most = largest(values);
  std::string line;
  for (const auto& value : values) {
    if (!value) {
      line += ' ';
      continue;
    }
    // Round up, so that only zero gets the lowest bar.
    const double part = most > 0 ? *value / most : 0;
    line += bars.at(static_cast<std::size_t>(std::ceil(part * highest)));
  }
  return line;
}

}  // namespace mailroom
