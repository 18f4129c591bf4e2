// Decodes with a table, and refuses unused bits that are not zero.

#include "crypto/base64url.hpp"

#include <array>

namespace mailroom {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::uint8_t foreign = 0xFF;

constexpr auto make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(foreign);
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
    if (value == foreign) return false;
    bits = (bits << 6) | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes[at++] = static_cast<std::uint8_t>(bits >> count);
    }
  }
  return (bits & ((1U << count) - 1)) == 0;
}

}  // namespace mailroom
