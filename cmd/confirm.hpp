#pragma once

#include <string>
#include <string_view>

#include "cmd/context.hpp"

namespace mailroom {

/// Asks `question` on the terminal unless --yes is given. Throws Error(declined) when the answer is not yes,
/// or when there is no terminal to ask on.
void confirm(Context& context, const std::string& question);

/// `y` or `yes`, in capitals or not, with blanks around it or not.
bool is_yes(std::string_view answer);

}  // namespace mailroom
