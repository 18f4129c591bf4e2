// What a user reads after a mistyped command or option.
#pragma once

#include <CLI/CLI.hpp>

#include "base/error.hpp"

namespace mailroom {

/// Throws Error(usage), with the nearest command or option as the hint, if parsing left an argument over.
/// CLI11 itself accepts it, because global options are allowed anywhere.
void refuse_leftovers(const CLI::App& app);

/// The command as typed: `mailroom migrate`.
std::string path_of(const CLI::App& app);

/// CLI11's error in our wording: in lower case, without a full stop.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace mailroom
