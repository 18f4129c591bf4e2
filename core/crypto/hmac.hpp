#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "crypto/key.hpp"

namespace mailroom {

constexpr std::size_t digest_size = 32;
using Digest = std::array<std::uint8_t, digest_size>;

/// HMAC-SHA256 (RFC 2104, FIPS 198-1) under one key, for many messages. Not for two threads at once.
class Hmac {
 public:
  explicit Hmac(const Key& key);
  ~Hmac();
  Hmac(Hmac&&) noexcept;
  Hmac& operator=(Hmac&&) noexcept;

  /// Of the message that `parts` make one after the other.
  Digest digest(std::initializer_list<std::string_view> parts);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// In a time that depends on nothing but the length.
bool equal_in_constant_time(const Digest& a, const Digest& b);

}  // namespace mailroom
