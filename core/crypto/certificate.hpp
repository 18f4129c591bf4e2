// Signatures that somebody's public key checks: that of a certificate, as of Amazon SNS, or a key by itself,
// as of SendGrid.
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

/// True if `der` is a public key (RFC 5280) of the curve P-256.
bool is_p256_key(std::span<const std::uint8_t> der);

/// True if such a key has signed the SHA-256 of `text` by ECDSA; `signature` is in DER.
bool is_signed_by_p256_key(std::span<const std::uint8_t> der, std::string_view text,
                           std::span<const std::uint8_t> signature);

}  // namespace mailroom::crypto
