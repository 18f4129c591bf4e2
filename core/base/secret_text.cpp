// Counts digits, searches for words that may be a token or a key, and writes *** for the passwords in a URL
// or a connection string. An error tells what is wrong with a key, and none of its digits.

#include "base/secret_text.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr std::size_t key_digits = 64;
constexpr std::size_t shortest_suspect = 32;

bool is_digit(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), is_digit);
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

template <typename Is>
bool any_is(std::string_view word, Is is) {
  return std::any_of(word.begin(), word.end(), [&](unsigned char c) { return is(c) != 0; });
}

bool may_be_secret(std::string_view word) {
  // The 32 bytes of a secret take 43 characters of base64url; a key takes 64.
  constexpr std::size_t shortest = 43;
  if (word.size() < shortest) return false;
  const bool is_mixed = any_is(word, [](int c) { return std::isupper(c); }) &&
                        any_is(word, [](int c) { return std::islower(c); }) &&
                        any_is(word, [](int c) { return std::isdigit(c); });
  // bytea begins with \x; the backslash ends the previous word.
  const auto digits = word.substr(word.front() == 'x' ? 1 : 0);
  return is_mixed || !any_is(digits, [](int c) { return std::isxdigit(c) == 0; });
}

/// `64 digits`, or `x64 digits`: bytea begins with \x, and the backslash ends the previous word.
bool is_secret_in_hex(std::string_view word) {
  constexpr std::size_t digits = 64;
  if (word.size() == digits + 1 && word.front() == 'x') word.remove_prefix(1);
  return word.size() == digits && !any_is(word, [](int c) { return std::isxdigit(c) == 0; });
}

constexpr std::string_view white_space = " \t\r\n";
constexpr std::string_view mask = "***";

/// Replaces `user:password` in `://user:password@` by `***`.
std::string without_addresses(std::string_view text) {
  constexpr std::string_view mark = "://";
  std::string shown;
  for (auto at = text.find(mark); at != std::string_view::npos; at = text.find(mark)) {
    const auto start = at + mark.size();
    const auto word = text.substr(start, text.substr(start).find_first_of(" \t\r\n'\""));
    const auto end = word.rfind('@');
    const bool has_password = end != std::string_view::npos && word.find(':') < end;
    shown.append(text.substr(0, start)).append(has_password ? mask : "");
    text.remove_prefix(start + (has_password ? end : 0));
  }
  return shown.append(text);
}

/// The number of bytes between `password` and its value in `text`, which follows `password`: the equals sign,
/// blanks and backslashes; 0 if there is no equals sign.
std::size_t before_value(std::string_view text) {
  const auto equals = text.find_first_not_of(white_space);
  if (equals == std::string_view::npos || text[equals] != '=') return 0;
  return std::min(text.find_first_not_of(" \t\r\n\\", equals + 1), text.size());
}

std::size_t value_length(std::string_view text) {
  if (text.starts_with('\'')) return std::min(text.find('\'', 1), text.size() - 1) + 1;
  return std::min(text.find_first_of(" \t\r\n'\"&;,"), text.size());
}

/// Replaces the value in `password=value` by `***`.
std::string without_values(const std::string& whole) {
  constexpr std::string_view keyword = "password";
  const auto lower = lower_case(whole);
  std::string shown;
  std::size_t done = 0;
  for (auto at = lower.find(keyword); at != std::string::npos; at = lower.find(keyword, at)) {
    at += keyword.size();
    const std::string_view rest = std::string_view(whole).substr(at);
    const auto start = before_value(rest);
    if (start == 0) continue;
    const auto length = value_length(rest.substr(start));
    shown.append(whole, done, at + start - done);
    if (length > 0) shown += mask;
    at += start + length;
    done = at;
  }
  return shown.append(whole, done);
}

}  // namespace

bool is_key_text(std::string_view text) {
  return text.size() == key_digits && is_hex(text);
}

void require_key_text(std::string_view text, std::string_view source) {
  if (is_key_text(text)) return;
  const auto problem = is_hex(text) ? fmt::format("has {} hexadecimal digit{}, and needs {}", text.size(),
                                                  text.size() == 1 ? "" : "s", key_digits)
                                    : "contains a character that is not a hexadecimal digit";
  throw Error(ExitCode::configuration, fmt::format("the signing key in {} {}", source, problem),
              how_to_make_key);
}

bool may_hold_key(std::string_view text) {
  const auto same_kind = [](char a, char b) { return is_digit(a) == is_digit(b); };
  return std::search_n(text.begin(), text.end(), shortest_suspect, '0', same_kind) != text.end();
}

std::string_view without_line_end(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(text.ends_with("\r\n") ? 2 : 1);
  return text;
}

std::string without_url_passwords(std::string_view text) {
  const auto whole = without_passwords(text);
  std::string shown;
  std::size_t done = 0;
  for (auto at = whole.find('@'); at != std::string::npos; at = whole.find('@', at + 1)) {
    const auto part = std::string_view(whole).substr(done, at - done);
    const auto mark = part.rfind("://");
    const auto user = part.substr(mark == std::string_view::npos ? 0 : mark + 3);
    const bool is_user = mark != std::string_view::npos && user.find(':') == std::string_view::npos;
    shown.append(part.substr(0, part.size() - user.size())).append(is_user ? user : mask).append("@");
    done = at + 1;
  }
  return shown.append(whole, done);
}

std::string without_passwords(std::string_view text) {
  return without_values(without_addresses(text));
}

std::string without_secrets(std::string_view whole) {
  const auto without = without_passwords(whole);
  std::string_view text = without;
  std::string shown;
  while (!text.empty()) {
    const auto* const end = std::find_if_not(text.begin(), text.end(), is_word_character);
    const auto word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    shown += may_be_secret(word) ? "***" : word;
    text.remove_prefix(word.size());
    if (text.empty()) break;
    shown += text.front();
    text.remove_prefix(1);
  }
  return shown;
}

bool holds_token(std::string_view text) {
  constexpr std::size_t token_size = 86;
  for (auto start = text.begin(); start != text.end();) {
    const auto* const end = std::find_if_not(start, text.end(), is_word_character);
    if (end - start == token_size) return true;
    const bool is_address = end != text.end() && *end == '@';
    if (!is_address && is_secret_in_hex({start, end})) return true;
    start = end == text.end() ? end : end + 1;
  }
  return false;
}

}  // namespace mailroom
