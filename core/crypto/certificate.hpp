// Signatures that the key of a certificate has made, such as those of Amazon SNS.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace mailroom::crypto {

/// The digest that was signed.
enum class SignedDigest : std::uint8_t { sha1, sha256 };

/// True if the RSA key of the certificate, in PEM, has signed `text` by PKCS #1 v1.5. False for whatever is
/// no such certificate. Who made the certificate is not checked: it must come from where it belongs.
bool is_signed_by_certificate(std::string_view certificate, std::string_view text,
                              std::span<const std::uint8_t> signature, SignedDigest digest);

}  // namespace mailroom::crypto
