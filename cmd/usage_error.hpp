#pragma once

#include <CLI/CLI.hpp>

#include "base/error.hpp"

namespace mailroom {

/// Throws Error(usage), with the nearest command or option as the hint, when parsing has left a word over:
/// global options may stand anywhere, so CLI11 takes no offence itself.
void refuse_leftovers(const CLI::App& app);

/// `mailroom migrate`, as a reader would type it.
std::string path_of(const CLI::App& app);

/// CLI11's complaint in our words, in lower case and without a full stop.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace mailroom
