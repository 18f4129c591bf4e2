#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mailroom {

/// Characters that `bytes` bytes take, unpadded.
constexpr std::size_t base64url_length(std::size_t bytes) {
  return (bytes * 8 + 5) / 6;
}

/// Writes the unpadded URL-safe base64 (RFC 4648, section 5) of `bytes` into `text`, which has exactly
/// base64url_length(bytes.size()) characters; no NUL is added.
void encode_base64url(std::span<const std::uint8_t> bytes, std::span<char> text);

/// True when `text` is the one encoding of bytes.size() bytes, which are then in `bytes`. Strict: the
/// URL-safe alphabet alone, no padding, no white space, unused bits zero. After false, `bytes` holds nothing
/// of use.
bool decode_base64url(std::string_view text, std::span<std::uint8_t> bytes);

}  // namespace mailroom
