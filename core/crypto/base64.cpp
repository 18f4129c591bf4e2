// Translates to the URL-safe alphabet and back, so that there is one decoder for both.

#include "crypto/base64.hpp"

#include <algorithm>
#include <array>

namespace mailroom::crypto {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::uint8_t no_digit = 0xFF;

constexpr auto make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(no_digit);
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}

constexpr auto values = make_values();

constexpr std::uint32_t bits_of(std::uint8_t first, std::uint8_t second, std::uint8_t third) {
  return std::uint32_t{first} << 16U | std::uint32_t{second} << 8U | third;
}

/// Writes the first `count` of the four characters that encode 24 bits.
inline void put_characters(std::uint32_t bits, unsigned count, char* text) {
  for (unsigned i = 0; i < count; ++i)
    text[i] = alphabet[(bits >> (18 - 6 * i)) & 63];
}

}  // namespace

std::string base64(std::span<const std::uint8_t> bytes) {
  std::string text(base64url_length(bytes.size()), '\0');
  encode_base64url(bytes, text);
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.resize((bytes.size() + 2) / 3 * 4, '=');
  return text;
}

std::optional<std::vector<std::uint8_t>> decoded_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  if (text.find_first_of("-_") != std::string_view::npos) return std::nullopt;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding)
    text.remove_suffix(1);
  std::string url(text);
  std::replace(url.begin(), url.end(), '+', '-');
  std::replace(url.begin(), url.end(), '/', '_');
  std::vector<std::uint8_t> bytes(url.size() * 3 / 4);
  if (!decode_base64url(url, bytes)) return std::nullopt;
  return bytes;
}

void encode_base64url(std::span<const std::uint8_t> bytes, std::span<char> text) {
  auto* at = text.data();
  for (; bytes.size() >= 3; bytes = bytes.subspan(3), at += 4)
    put_characters(bits_of(bytes[0], bytes[1], bytes[2]), 4, at);
  if (bytes.size() == 2) put_characters(bits_of(bytes[0], bytes[1], 0), 3, at);
  if (bytes.size() == 1) put_characters(bits_of(bytes[0], 0, 0), 2, at);
}

bool decode_base64url(std::string_view text, std::span<std::uint8_t> bytes) {
  if (text.size() != base64url_length(bytes.size())) return false;
  std::uint32_t bits = 0;
  unsigned count = 0;
  std::size_t at = 0;
  for (const char c : text) {
    const auto value = values[static_cast<unsigned char>(c)];
    if (value == no_digit) return false;
    bits = (bits << 6) | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes[at++] = static_cast<std::uint8_t>(bits >> count);
    }
  }
  return (bits & ((1U << count) - 1)) == 0;
}

}  // namespace mailroom::crypto
