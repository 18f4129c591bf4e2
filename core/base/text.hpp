#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"

namespace mailroom {

/// The candidate with the smallest edit distance to `word`, or an empty text when none is near enough to be
/// meant.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// Columns that `text` takes on a terminal: two for East Asian wide characters and emoji, none for
/// the usual combining ones, one for all others. Bytes that are no UTF-8 take a column each.
std::size_t display_width(std::string_view text);

/// `text` cut to `width` columns, with an ellipsis at the end where something was cut off.
std::string fit(std::string_view text, std::size_t width);

/// The words of `text` in lines of at most `width` columns. On the first line `taken` columns are taken
/// already; the others begin behind `indent` spaces. A longer word has a line to itself. `width` 0 is one
/// line.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent, std::size_t taken = 0);

/// Each line of `text` that is longer than `width`, wrapped; its other lines begin where it begins. `width` 0
/// is the text as it is.
std::string folded(std::string_view text, std::size_t width);

/// What tells an address apart without giving it away: `a***@mail.example`, for a login `a***`.
std::string masked_address(std::string_view address);

/// `text` with `***` for what stands between `://` and `@` of an address, and for what follows `password=`.
std::string without_passwords(std::string_view text);

/// without_passwords(), and `***` for each word that may be a secret of ours, for what repeats what somebody
/// typed: 43 or more characters of base64url with capitals, small letters and digits among them, or 43 or
/// more hexadecimal digits.
std::string without_secrets(std::string_view text);

/// 1234567 as `1,234,567`.
std::string with_thousands(std::int64_t number);

/// `1 token`, `1,234 tokens`
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace mailroom
