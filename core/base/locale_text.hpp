#pragma once

#include <string_view>

namespace mailroom {

/// True where the locale shows more than ASCII: its charset is UTF-8, by the first of LC_ALL, LC_CTYPE and
/// LANG that is set. Without any of them it is the C locale, and false. Text of our own keeps to it; data is
/// shown as it is.
bool shows_utf8();

/// Stands for what was left out: one column, or three where only ASCII is shown.
std::string_view ellipsis();

}  // namespace mailroom
