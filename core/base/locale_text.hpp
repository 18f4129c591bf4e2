// Whether mailroom's own text may go beyond ASCII in this locale.
#pragma once

#include <string_view>

namespace mailroom {

/// True if the locale's charset is UTF-8, by the first of LC_ALL, LC_CTYPE and LANG that is set; false if
/// none is set (the C locale). Applies to mailroom's own text; data is shown as it is.
bool shows_utf8();

/// Marks omitted text: `…` (one column), or `...` if the locale is not UTF-8.
std::string_view ellipsis();

}  // namespace mailroom
