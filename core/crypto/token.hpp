// The format of a token: what is signed, how it is encoded, and how a signature is checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "crypto/hmac.hpp"

namespace mailroom::crypto {

constexpr std::size_t secret_size = 32;
constexpr std::size_t secret_text_size = 43;  ///< characters of an encoded secret
constexpr std::size_t token_size = 86;        ///< characters of a signed token
constexpr std::size_t code_size = 5;

using Secret = std::array<std::uint8_t, secret_size>;
using TokenText = std::array<char, token_size>;

/// A decoded token whose signature has not been verified yet.
struct DecodedToken {
  Secret secret;
  Digest signature;
};

/// Signs `secret`: unpadded base64url of secret, then HMAC-SHA256(key, path + secret [+ code]). The path is
/// that of the action, such as `/activate`; the code is empty for an action without one.
TokenText sign_token(Hmac& hmac, std::string_view path, const Secret& secret, std::string_view code);

/// Returns nullopt unless `text` is 86 characters of the URL-safe alphabet without padding, white space or
/// stray bits in the last character.
std::optional<DecodedToken> decode_token(std::string_view text);

/// True if `token` was signed with this path and code. Compares in constant time.
bool is_signed(Hmac& hmac, const DecodedToken& token, std::string_view path, std::string_view code);

/// The code from 00000 to 99999 with which `token` was signed; nullopt if there is none.
std::optional<std::string> find_code(Hmac& hmac, const DecodedToken& token, std::string_view path);

}  // namespace mailroom::crypto
