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

}  // namespace

void encode_base64url(std::span<const std::uint8_t> bytes, std::span<char> text) {
  std::uint32_t bits = 0;
  unsigned count = 0;
  std::size_t at = 0;
  for (const auto byte : bytes) {
    bits = (bits << 8) | byte;
    for (count += 8; count >= 6; count -= 6)
      text[at++] = alphabet[(bits >> (count - 6)) & 63];
  }
  if (count > 0) text[at] = alphabet[(bits << (6 - count)) & 63];
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
