// Asks the operator before a command changes something.
#pragma once

#include <string>
#include <string_view>

#include "cmd/terminal/context.hpp"

namespace mailroom {

/// Asks `question` on the terminal unless --yes is given. Throws Error(declined) if the answer is not yes or
/// there is no terminal.
void confirm(Context& context, const std::string& question);

/// True for `y` or `yes`, ignoring case and blanks around it.
bool is_yes(std::string_view answer);

}  // namespace mailroom
