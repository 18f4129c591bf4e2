// The digests beside HMAC: of message ids and migrations, and the old one of CRAM-MD5; and how a failure of
// OpenSSL ends the command.
#pragma once

#include <array>
#include <initializer_list>
#include <openssl/err.h>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "crypto/hmac.hpp"

namespace mailroom::crypto {

/// Throws Error(failed) with `attempt` and OpenSSL's reason. Private to this directory.
[[noreturn]] inline void throw_openssl_error(const std::string& attempt) {
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  ERR_clear_error();
  throw Error(ExitCode::failed, "OpenSSL cannot " + attempt + ": " + reason.data());
}

/// HMAC-MD5 in hexadecimal digits, for CRAM-MD5 (RFC 2195) and nothing else. Throws Error(failed) where
/// OpenSSL has no MD5.
std::string hmac_md5(std::string_view key, std::string_view message);

/// The SHA-256 (FIPS 180-4) of the concatenated `parts`. Throws Error(failed) if OpenSSL fails.
Digest sha256(std::initializer_list<std::string_view> parts);

}  // namespace mailroom::crypto
