// What keys, tokens and passwords look like within text, so that one in the wrong place is never shown.
#pragma once

#include <string>
#include <string_view>

namespace mailroom {

// A signing key is written as 64 hexadecimal digits.

constexpr auto how_to_make_key = "make one with: openssl rand -hex 32";

bool is_key_text(std::string_view text);

/// Throws Error(configuration) unless is_key_text(). The message names `source`, the origin of `text`, and
/// never shows `text`.
void require_key_text(std::string_view text, std::string_view source);

/// True if `text` has 32 or more hexadecimal digits in a row: perhaps a key, which no message may show.
bool may_hold_key(std::string_view text);

/// `text` without a newline at its end: a secret that was made from a file often has one.
std::string_view without_line_end(std::string_view text);

/// `text` with `***` for a user and password between `://` and `@`, and for the value after `password=`.
std::string without_passwords(std::string_view text);

/// without_passwords() for a setting that should be a URL, or several: also `***` for all that is before an
/// `@` if that is no scheme and user.
std::string without_url_passwords(std::string_view text);

/// without_passwords(), and `***` for each word that may be a secret or key: 43 or more characters of
/// base64url with upper case, lower case and digits, or 43 or more hexadecimal digits. For text that quotes
/// user input.
std::string without_secrets(std::string_view text);

/// True if `text` is a signed token or contains one, 86 characters of base64url between others, or the secret
/// of one, as psql shows tokens.secret: 64 hexadecimal digits between others. Digits before an @ are an
/// address.
bool holds_token(std::string_view text);

/// What to do where a token was given in place of a name.
constexpr const char* token_hint =
    "mailroom audit --token TOKEN and mailroom verify TOKEN take one; an account with such a login is login:NAME";

}  // namespace mailroom
