// From the words of a command line to the function that runs it, or to what its user reads after a mistake.
#pragma once

#include <string>
#include <vector>

#include "cmd/command.hpp"

namespace mailroom::cmd {

/// A parsed command line: the function to run, and its options.
struct Invocation {
  GlobalOptions global;
  config::Overrides overrides;
  Run run;
};

/// Parses `arguments` (without the program's name). Throws Error(usage) with the nearest command or option as
/// the hint. For --help and --version it returns a run that prints.
Invocation parse_arguments(const std::vector<std::string>& arguments);

}  // namespace mailroom::cmd
