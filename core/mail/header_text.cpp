// The encoded words of RFC 2047, the folding of lines, and the quoting of display names.

#include <algorithm>
#include <array>
#include <chrono>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "mail/message.hpp"

namespace mailroom::mail {
namespace {

constexpr std::size_t longest_line = 76;
constexpr std::string_view word_start = "=?utf-8?Q?";
constexpr std::string_view word_end = "?=";
constexpr std::string_view fold = "\r\n ";

bool is_ascii_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// The bytes that an encoded word may have as they are, also in a display name (RFC 2047, section 5, rule 3).
constexpr auto is_word_literal = [] {
  std::array<bool, 256> literal{};
  for (const char c : std::string_view("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!*+-/"))
    literal[static_cast<unsigned char>(c)] = true;
  return literal;
}();

void append_encoded_character(std::string& out, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += '=';
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
}

/// Appends `text`, which is not empty, in encoded words, the first from `column` on, which is at most 40.
/// Each holds whole characters, as some readers decode each word for itself. A word has at most 75 columns
/// (RFC 2047, section 2), since a line begins with something else. Returns the column after the last word.
std::size_t append_encoded_words(std::string& out, std::size_t column, std::string_view text) {
  out += word_start;
  column += word_start.size();
  while (!text.empty()) {
    const auto length = std::max<std::size_t>(sequence_length(text), 1);
    const char first = text.front();
    const bool is_literal = is_word_literal[static_cast<unsigned char>(first)] || first == ' ';
    const auto columns = is_literal ? 1 : 3 * length;
    if (column + columns + word_end.size() > longest_line) {
      out.append(word_end).append(fold).append(word_start);
      column = 1 + word_start.size();
    }
    if (is_literal) {
      out += first == ' ' ? '_' : first;
    } else {
      append_encoded_character(out, text.substr(0, length));
    }
    column += columns;
    text.remove_prefix(length);
  }
  out += word_end;
  return column + word_end.size();
}

bool is_plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

/// The size of the front of `text` up to the next blank that may become a fold: one with text on both sides.
std::size_t foldable_size(std::string_view text) {
  const auto start = text.find_first_not_of(' ');
  if (start == std::string_view::npos) return text.size();
  const auto end = text.find(' ', start);
  if (end == std::string_view::npos || text.find_first_not_of(' ', end) == std::string_view::npos)
    return text.size();
  return end;
}

/// Appends `text`, which begins in `column`, with a line end before a blank wherever a line would be too
/// long.
void append_folded(std::string& out, std::size_t column, std::string_view text) {
  bool is_first = true;
  while (!text.empty()) {
    const auto size = foldable_size(text);
    if (!is_first && column + size > longest_line) {
      out += "\r\n";
      column = 0;
    }
    out.append(text.substr(0, size));
    column += size;
    text.remove_prefix(size);
    is_first = false;
  }
}

/// True if readers show `text` as it is when it is folded from `column` on.
bool stays_as_it_is(std::string_view text, std::size_t column) {
  if (text.empty()) return true;
  if (!is_plain_ascii(text) || text.find("=?") != std::string_view::npos) return false;
  if (text.front() == ' ' || text.back() == ' ' || text.find("  ") != std::string_view::npos) return false;
  while (true) {
    const auto size = foldable_size(text);
    if (column + size > longest_line && (column > 0 || size > longest_line)) return false;
    if (size == text.size()) return true;
    text.remove_prefix(size);
    column = 0;
  }
}

bool is_atoms(std::string_view name) {
  const auto is_allowed = [](char c) {
    return is_ascii_letter_or_digit(c) ||
           std::string_view("!#$%&'*+-/=?^_`{|}~ ").find(c) != std::string_view::npos;
  };
  return std::all_of(name.begin(), name.end(), is_allowed) && name.find("  ") == std::string_view::npos &&
         name.front() != ' ' && name.back() != ' ';
}

std::string quoted(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

/// Appends a display name; returns the column after it.
std::size_t append_display_name(std::string& out, std::size_t column, std::string_view name) {
  constexpr std::size_t longest_plain = 60;
  const bool is_plain =
      is_plain_ascii(name) && name.size() <= longest_plain && name.find("=?") == std::string_view::npos;
  if (!is_plain) return append_encoded_words(out, column, name);
  const auto text = is_atoms(name) ? std::string(name) : quoted(name);
  if (column + text.size() > longest_line) return append_encoded_words(out, column, name);
  out += text;
  return column + text.size();
}

void append_mailbox(std::string& out, std::size_t column, const Mailbox& mailbox) {
  const auto address = mailbox.address.text();
  if (mailbox.name.empty()) {
    out += address;
    return;
  }
  // A comma may follow.
  column = append_display_name(out, column, mailbox.name);
  out += column + address.size() + 3 > longest_line ? "\r\n <" : " <";
  out.append(address).append(">");
}

}  // namespace

void append_text_header(std::string& out, std::string_view name, std::string_view value) {
  constexpr std::size_t last_start = 40;
  const auto column = name.size() + 2;
  if (stays_as_it_is(value, column)) {
    out.append(name).append(": ");
    append_folded(out, column, value);
  } else if (column > last_start) {
    out.append(name).append(":").append(fold);
    append_encoded_words(out, 1, value);
  } else {
    out.append(name).append(": ");
    append_encoded_words(out, column, value);
  }
  out += "\r\n";
}

void append_raw_header(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  append_folded(out, name.size() + 2, value);
  out += "\r\n";
}

void append_mailboxes_header(std::string& out, std::string_view name, const std::vector<Mailbox>& mailboxes) {
  out.append(name).append(": ");
  auto column = name.size() + 2;
  for (const auto& mailbox : mailboxes) {
    if (&mailbox != &mailboxes.front()) {
      out += ",\r\n ";
      column = 1;
    }
    append_mailbox(out, column, mailbox);
  }
  out += "\r\n";
}

std::string date_header_text(Moment moment) {
  using namespace std::chrono;
  constexpr std::array<const char*, 7> weekdays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto shown = floor<seconds>(std::clamp(moment, Moment(), year_10000 - microseconds(1)));
  const auto midnight = floor<days>(shown);
  const year_month_day date(midnight);
  const hh_mm_ss time(shown - midnight);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} +0000", weekdays[weekday(midnight).c_encoding()],
                     static_cast<unsigned>(date.day()), months[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), time.hours().count(), time.minutes().count(),
                     time.seconds().count());
}

}  // namespace mailroom::mail
