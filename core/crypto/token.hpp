#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "crypto/hmac.hpp"

namespace mailroom {

/// The kinds of mail; the values are those of the output format.
enum class Action : int { activation = 1, password_recovery = 2 };

/// As the database spells it: `activation` or `password_recovery`.
constexpr std::string_view action_name(Action action) {
  return action == Action::activation ? "activation" : "password_recovery";
}

constexpr std::size_t secret_size = 32;
constexpr std::size_t secret_text_size = 43;  ///< characters of a secret alone, as a token has it
constexpr std::size_t token_size = 86;        ///< characters of a signed token
constexpr std::size_t code_size = 5;

using Secret = std::array<std::uint8_t, secret_size>;
using TokenText = std::array<char, token_size>;

/// A signed token, taken apart: nothing is known yet of its authenticity.
struct DecodedToken {
  Secret secret;
  Digest signature;
};

/// Signs `secret`: unpadded base64url of secret, then HMAC-SHA256(key, path + secret [+ code]), where the
/// path is
/// `/activate` or `/recover` and the code counts for recovery alone.
TokenText sign_token(Hmac& hmac, Action action, const Secret& secret, std::string_view code);

/// Strict: 86 characters of the URL-safe alphabet, no padding, no white space, no stray bits in the last one.
std::optional<DecodedToken> decode_token(std::string_view text);

/// Compares in constant time.
bool is_signed_for_activation(Hmac& hmac, const DecodedToken& token);
bool is_signed_for_recovery(Hmac& hmac, const DecodedToken& token, std::string_view code);

/// The code among all of 00000 to 99999 under which `token` is a genuine recovery token.
std::optional<std::string> find_recovery_code(Hmac& hmac, const DecodedToken& token);

}  // namespace mailroom
