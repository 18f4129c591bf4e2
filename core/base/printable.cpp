#include "base/printable.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "base/utf8.hpp"

namespace mailroom {
namespace {

/// True for control characters, characters that change the direction of text, and invisible characters: they
/// make a terminal, a browser or a log show something other than the text.
bool misleads(char32_t point) {
  constexpr std::array<PointRange, 8> ranges{{{0x00, 0x1F},
                                              {0x7F, 0x9F},
                                              {0x061C, 0x061C},
                                              {0x200B, 0x200F},
                                              {0x2028, 0x202E},
                                              {0x2060, 0x206F},
                                              {0xFEFF, 0xFEFF},
                                              {0xFFF9, 0xFFFB}}};
  return is_in(ranges, point);
}

/// True for printable ASCII: neither the first byte of a misleading character nor part of invalid UTF-8.
bool is_plain(char c) {
  return c >= 0x20 && c < 0x7F;
}

/// The size of a colour sequence (`ESC [ digits and semicolons m`) at the front of `text`; 0 if there is
/// none.
std::size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const auto end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

/// `text` with a question mark for each misleading character and each byte of invalid UTF-8. `kept`, called
/// with the rest of the text at such a place, returns how many bytes to keep as they are.
template <typename Kept>
std::string replaced(std::string_view text, Kept kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto* const special = std::find_if_not(text.begin(), text.end(), is_plain);
    const auto plain = static_cast<std::size_t>(special - text.begin());
    result.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto length = sequence_length(text);
    const bool is_sound = length > 0 && !misleads(code_point(text, length));
    const auto whole = is_sound ? length : kept(text);
    result.append(whole > 0 ? text.substr(0, whole) : "?");
    text.remove_prefix(std::max<std::size_t>(whole > 0 ? whole : length, 1));
  }
  return result;
}

/// `\uXXXX`. All misleading characters are below U+10000.
std::string escaped_point(char32_t point) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U})
    text += digits[point >> shift & 0xFU];
  return text;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string sound_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto length = sequence_length(text);
    result.append(length > 0 ? text.substr(0, length) : "\xEF\xBF\xBD");
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const auto length = sequence_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (length == 0 || first < 0x20 || first == 0x7F) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text) {
  return replaced(text, [](std::string_view) { return std::size_t{0}; });
}

std::string printable_lines(std::string_view text) {
  return replaced(text, [](std::string_view rest) {
    return rest.front() == '\n' || rest.front() == '\t' ? std::size_t{1} : colour_length(rest);
  });
}

std::string shown_text(std::string_view text) {
  constexpr std::size_t columns = 1000;
  return fit(printable(text), columns);
}

std::string escaped_json(std::string json) {
  // JSON text has ASCII control characters escaped already, except DEL.
  const auto may_mislead = [](char c) { return c == 0x7F || static_cast<unsigned char>(c) >= 0x80; };
  if (std::none_of(json.begin(), json.end(), may_mislead)) return json;
  std::string result;
  result.reserve(json.size());
  for (std::string_view rest = json; !rest.empty();) {
    const auto length = std::max<std::size_t>(sequence_length(rest), 1);
    const auto point = code_point(rest, length);
    if (may_mislead(rest.front()) && misleads(point)) {
      result += escaped_point(point);
    } else {
      result.append(rest.substr(0, length));
    }
    rest.remove_prefix(length);
  }
  return result;
}

}  // namespace mailroom
