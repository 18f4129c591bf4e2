// The old digest that a relay with CRAM-MD5 asks for at the login.
#pragma once

#include <string>
#include <string_view>

namespace mailroom {

/// HMAC-MD5 in hexadecimal digits, for CRAM-MD5 (RFC 2195) and nothing else. Throws Error(failed) where
/// OpenSSL has no MD5.
std::string hmac_md5(std::string_view key, std::string_view message);

}  // namespace mailroom
