// The list of misleading characters, and a scan that reads plain ASCII in runs.

#include "base/printable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/terminal_text.hpp"
#include "base/text.hpp"

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

/// Removes the first character of `text`, or a byte of invalid UTF-8.
std::string_view take_one(std::string_view& text) {
  const auto taken = text.substr(0, std::max<std::size_t>(sequence_length(text), 1));
  text.remove_prefix(taken.size());
  return taken;
}

/// `text` with replacements for misleading characters and bytes of invalid UTF-8. `replace` gets the rest of
/// the text from such a place on; it removes something from that, and returns what replaces it.
template <typename Replace>
std::string replaced(std::string_view text, Replace replace) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto* const special = std::find_if_not(text.begin(), text.end(), is_plain);
    auto sound = static_cast<std::size_t>(special - text.begin());
    if (sound == 0) sound = sequence_length(text);
    if (sound > 0 && (is_plain(text.front()) || !misleads(code_point(text, sound)))) {
      result.append(text.substr(0, sound));
      text.remove_prefix(sound);
    } else {
      result += replace(text);
    }
  }
  return result;
}

/// The size of as many whole words of ASCII as are at the front of `text`: eight bytes at once.
std::size_t ascii_words_size(std::string_view text) {
  constexpr std::uint64_t high_bits = 0x8080808080808080U;
  std::size_t size = 0;
  for (std::uint64_t word = 0; text.size() - size >= sizeof word; size += sizeof word) {
    std::memcpy(&word, text.data() + size, sizeof word);
    if ((word & high_bits) != 0) break;
  }
  return size;
}

std::string_view question_mark(std::string_view& rest) {
  take_one(rest);
  return "?";
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
  while (true) {
    text.remove_prefix(ascii_words_size(text));
    if (text.empty()) return true;
    const auto length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
}

std::string sound_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const bool is_sound = sequence_length(text) > 0;
    const auto character = take_one(text);
    result += is_sound ? character : "\xEF\xBF\xBD";
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
  return replaced(text, question_mark);
}

std::string printable_lines(std::string_view text) {
  return replaced(text, [](std::string_view& rest) {
    const bool is_layout = rest.front() == '\n' || rest.front() == '\t';
    const auto kept = rest.substr(0, is_layout ? 1 : colour_length(rest));
    rest.remove_prefix(kept.size());
    return kept.empty() ? question_mark(rest) : kept;
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
  return replaced(json, [&](std::string_view& rest) {
    const auto character = take_one(rest);
    return may_mislead(character.front()) ? escaped_point(code_point(character, character.size()))
                                          : std::string(character);
  });
}

bool shows_utf8() {
  for (const auto* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const auto locale = lower_case(value);
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

std::string_view ellipsis() {
  return shows_utf8() ? "…" : "...";
}

}  // namespace mailroom
