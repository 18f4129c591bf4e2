// Counts hexadecimal digits. An error tells what is wrong with a key, and none of its digits.

#include "base/key_text.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/error.hpp"

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

}  // namespace mailroom
