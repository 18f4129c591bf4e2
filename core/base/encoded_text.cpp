// Digits for bytes, and what stands for a byte that a receiver does not take.

#include "base/encoded_text.hpp"

#include <algorithm>
#include <cctype>

namespace mailroom {
namespace {

constexpr std::string_view lower_digits = "0123456789abcdef";

void append_hex(std::string& text, unsigned char byte, std::string_view digits) {
  text += digits[byte >> 4U];
  text += digits[byte & 15U];
}

}  // namespace

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

}  // namespace mailroom
