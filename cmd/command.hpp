#pragma once

#include <functional>

#include "cmd/command_syntax.hpp"
#include "cmd/context.hpp"

namespace mailroom {

/// Does the work of a parsed command and says how it ended.
using Run = std::function<ExitCode(Context&)>;

/// A subcommand: `add` describes what it takes, which parsing only stores, and returns what runs with that.
struct Command {
  const char* name;
  const char* summary;
  const char* examples;  ///< the first thing that --help shows, and notes, the last one: see ExampleText
  Run (*add)(CommandSyntax& syntax);
  /// What the man page says beyond the help: paragraphs of plain text with an empty line between them.
  const char* description = "";
};

/// Stands before an argument that is a token beginning with a hyphen, so that it does not pass for an option.
constexpr char token_mark = '\x01';

}  // namespace mailroom
