// Finds the passwords in text that may quote a URL or a connection string, and writes *** for them.

#include <algorithm>

#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr std::string_view blanks = " \t\r\n";
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
  const auto equals = text.find_first_not_of(blanks);
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

}  // namespace mailroom
