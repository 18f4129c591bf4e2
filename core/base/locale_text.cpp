// Reads the variables of the locale itself, since the program never calls setlocale(3).

#include "base/locale_text.hpp"

#include <cstdlib>

#include "base/text.hpp"

namespace mailroom {
bool shows_utf8() {
  for (const auto* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const auto locale = lower_case(value);
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

std::string_view ellipsis() {
  return shows_utf8() ? "…" : "...";
}

}  // namespace mailroom
