// From the words of a command line to the function that runs it, or to what its user reads after a mistake.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cmd/command.hpp"

namespace mailroom {

/// Throws Error(usage), with the nearest command or option as the hint, if parsing left an argument over.
/// CLI11 itself accepts it, because global options are allowed anywhere.
void refuse_leftovers(const CLI::App& app);

/// The command as typed: `mailroom migrate`.
std::string path_of(const CLI::App& app);

/// CLI11's error in our wording: in lower case, without a full stop.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

/// A parsed command line: the function to run, and its options.
struct Invocation {
  GlobalOptions global;
  Overrides overrides;
  Run run;
};

/// Parses `arguments` (without the program's name). Throws Error(usage) with the nearest command or option as
/// the hint. For --help and --version it returns a run that prints.
Invocation parse_arguments(const std::vector<std::string>& arguments);

}  // namespace mailroom
