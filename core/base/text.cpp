// Widths from Unicode blocks, edit distances, and digits.

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string_view>

#include "base/printable.hpp"

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

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

constexpr std::size_t bars_count = 8;
using Bars = std::array<std::string_view, bars_count>;
constexpr Bars blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr Bars ascii_blocks{"_", ".", ":", "-", "=", "+", "*", "#"};

constexpr std::string_view lower_digits = "0123456789abcdef";

void append_hex(std::string& text, unsigned char byte, std::string_view digits) {
  text += digits[byte >> 4U];
  text += digits[byte & 15U];
}

}  // namespace

void append_formatted(std::string& text, fmt::string_view format, fmt::format_args values) {
  fmt::vformat_to(std::back_inserter(text), format, values);
}

std::string hex_text(std::span<const std::uint8_t> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const auto byte : bytes)
    append_hex(text, byte, lower_digits);
  return text;
}

std::string hex_text(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes)
    append_hex(text, static_cast<unsigned char>(byte), lower_digits);
  return text;
}

std::string percent_encoded(std::string_view text, std::string_view also, char mark) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (byte < 0x80 && std::isalnum(byte) != 0) || also.find(c) != std::string_view::npos;
    encoded += is_plain ? c : mark;
    if (!is_plain) append_hex(encoded, byte, "0123456789ABCDEF");
  }
  return encoded;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (auto end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (auto& c : result)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool holds_in_any_case(std::string_view text, std::string_view part) {
  return lower_case(text).find(part) != std::string::npos;
}

std::string tag_text(std::string_view text, std::string_view also, std::size_t longest) {
  std::string tag(text.substr(0, longest));
  std::ranges::replace_if(
      tag,
      [&](char c) {
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        return !is_letter && also.find(c) == std::string_view::npos;
      },
      '_');
  return tag;
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = word.size() / 2 + 1;
  for (const auto& candidate : candidates) {
    const auto distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

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

std::string masked_address(std::string_view address) {
  std::size_t first = address.empty() ? 0 : 1;
  while (first < address.size() && is_continuation(address[first]))
    ++first;
  const auto at = address.rfind('@');
  return std::string(address.substr(0, first)) + "***" +
         (at == std::string_view::npos ? "" : std::string(address.substr(at)));
}

std::string with_thousands(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t digits_from = number < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > digits_from + 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

std::string shell_word(const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_' || c == ',';
  });
  if (plain && !text.empty()) return text;
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string counted(std::int64_t count, std::string_view noun) {
  auto text = with_thousands(count).append(" ").append(noun);
  return count == 1 ? text : text + "s";
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
