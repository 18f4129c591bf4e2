#pragma once

#include <string>

#include "cmd/context.hpp"

namespace mailroom {

/// Asks `question` on the terminal unless --yes is given. Throws Error(declined) when the answer is not yes,
/// or when there is no terminal to ask on.
void confirm(Context& context, const std::string& question);

}  // namespace mailroom
