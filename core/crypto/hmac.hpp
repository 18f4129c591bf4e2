// What signs tokens and webhook requests.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>

#include "crypto/key.hpp"

struct evp_mac_ctx_st;  // of OpenSSL

namespace mailroom::crypto {

constexpr std::size_t digest_size = 32;
using Digest = std::array<std::uint8_t, digest_size>;

/// HMAC-SHA256 (RFC 2104, FIPS 198-1) with one key, for many messages. Not thread-safe.
class Hmac {
 public:
  explicit Hmac(const Key& key) : Hmac(std::span<const std::uint8_t>(key.bytes())) {}
  /// A key of any length.
  explicit Hmac(std::span<const std::uint8_t> key);

  /// The HMAC of the concatenated `parts`. Throws Error(failed) if OpenSSL fails.
  Digest digest(std::initializer_list<std::string_view> parts);

 private:
  struct Free {
    void operator()(evp_mac_ctx_st* context) const;
  };
  std::unique_ptr<evp_mac_ctx_st, Free> context_;
};

/// Compares in constant time.
bool equal_in_constant_time(const Digest& a, const Digest& b);

}  // namespace mailroom::crypto
