// What a signing key looks like as text, so that one in the wrong place is never shown.
#pragma once

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

}  // namespace mailroom
