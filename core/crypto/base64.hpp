// Base64 with padding, for logins to relays and signatures of webhooks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// The padded base64 (RFC 4648, section 4) of `bytes`.
std::string base64(std::span<const std::uint8_t> bytes);

/// The bytes that `text` encodes; nullopt unless it is their one valid encoding.
std::optional<std::vector<std::uint8_t>> decoded_base64(std::string_view text);

}  // namespace mailroom
