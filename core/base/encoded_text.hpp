// Bytes as text that programs read: hexadecimal digits, parts of a URI, tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mailroom {

/// Two hexadecimal digits for each byte, in lower case.
std::string hex_text(std::span<const std::uint8_t> bytes);
std::string hex_text(std::string_view bytes);

/// What a hexadecimal digit, in lower or upper case, stands for; -1 for any other character.
constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const auto lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// `text` with `mark` and two hexadecimal digits, `%2F`, for each byte that is neither a letter nor a digit
/// of ASCII nor one of `also`: by default as RFC 3986 writes a part of a URI.
std::string percent_encoded(std::string_view text, std::string_view also = "-._~", char mark = '%');

/// The first `longest` bytes of `text`, with `_` for each that is neither a letter nor a digit of ASCII nor
/// one of `also`: the tag of a mail, as a provider takes it.
std::string tag_text(std::string_view text, std::string_view also, std::size_t longest);

}  // namespace mailroom
