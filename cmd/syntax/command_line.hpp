// The whole command line as CLI11 sees it, for the parser and for the reference.
#pragma once

#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "cmd/command.hpp"

namespace mailroom {

/// Every command and option as described to CLI11, and the variables in which parsing stores values. The
/// constructor parses nothing: `app` can also be read as a description.
struct CommandLine {
  CommandLine();
  // The callbacks of `app` refer to the members.
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  GlobalOptions global;
  Overrides overrides;
  CLI::App app;
  std::vector<std::pair<CLI::App*, Run>> runs;  ///< a command, and the function that runs it
};

/// The DESCRIPTION of the program's man page: paragraphs separated by empty lines.
extern const char* const program_description;

}  // namespace mailroom
