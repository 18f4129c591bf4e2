// Base64 with padding, for logins and webhooks, and base64url, for tokens, in which no two texts stand for
// the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::crypto {

/// The length of the unpadded encoding of `bytes` bytes.
constexpr std::size_t base64url_length(std::size_t bytes) {
  return (bytes * 8 + 5) / 6;
}

/// Writes the unpadded URL-safe base64 (RFC 4648, section 5) of `bytes` into `text`, which has exactly
/// base64url_length(bytes.size()) characters; no NUL is added.
void encode_base64url(std::span<const std::uint8_t> bytes, std::span<char> text);

/// Decodes `text` into `bytes`. Returns false unless `text` is the one valid encoding of bytes.size() bytes:
/// URL-safe alphabet, no padding, no white space, unused bits zero. After false the content of `bytes` is
/// unspecified.
bool decode_base64url(std::string_view text, std::span<std::uint8_t> bytes);

/// The padded base64 (RFC 4648, section 4) of `bytes`.
std::string base64(std::span<const std::uint8_t> bytes);

/// The bytes that `text` encodes; nullopt unless it is their one valid encoding.
std::optional<std::vector<std::uint8_t>> decoded_base64(std::string_view text);

}  // namespace mailroom::crypto
