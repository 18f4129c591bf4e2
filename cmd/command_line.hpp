#pragma once

#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "cmd/command.hpp"

namespace mailroom {

/// Every command and option as described to CLI11, and where parsing puts what it finds. Nothing is parsed
/// yet: whoever only wants to know what there is, reads `app`.
struct CommandLine {
  CommandLine();
  // The callbacks of `app` refer to the members.
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  GlobalOptions global;
  Overrides overrides;
  CLI::App app;
  std::vector<std::pair<CLI::App*, Run>> runs;  ///< a command, and what runs when it is given
};

/// What the program's man page says beyond the help: paragraphs with an empty line between them.
extern const char* const program_description;

}  // namespace mailroom
