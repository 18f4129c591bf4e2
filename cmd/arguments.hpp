#pragma once

#include <string>
#include <vector>

#include "cmd/command.hpp"

namespace mailroom {

/// A parsed command line: what runs, and with what.
struct Invocation {
  GlobalOptions global;
  Overrides overrides;
  Run run;
};

/// Parses `arguments` (without the program's name). Throws Error(usage) with the nearest command or option as
/// the hint. --help and --version come back as a run that prints.
Invocation parse_arguments(const std::vector<std::string>& arguments);

}  // namespace mailroom
