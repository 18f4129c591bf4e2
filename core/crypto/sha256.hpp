// The digest of message ids and of migrations on record.
#pragma once

#include <initializer_list>
#include <string_view>

#include "crypto/hmac.hpp"

namespace mailroom {

/// The SHA-256 (FIPS 180-4) of the concatenated `parts`. Throws Error(failed) if OpenSSL fails.
Digest sha256(std::initializer_list<std::string_view> parts);

}  // namespace mailroom
