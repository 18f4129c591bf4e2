// The form of a subcommand: its name, its help, its options and the function that runs it.
#pragma once

#include <functional>

#include "cmd/syntax/command_syntax.hpp"
#include "cmd/terminal/context.hpp"

namespace mailroom {

/// Runs a parsed command and returns its exit code.
using Run = std::function<ExitCode(Context&)>;

/// A subcommand. `add` describes its options and operands, which parsing only stores, and returns the
/// function that runs with them.
struct Command {
  const char* name;
  const char* summary;
  const char*
      examples;  ///< examples, which --help shows first, and notes, which it shows last: see ExampleText
  Run (*add)(CommandSyntax& syntax);
  /// The DESCRIPTION of the man page: paragraphs of plain text, separated by empty lines.
  const char* description = "";
};

/// Marks an argument that is a token beginning with a hyphen, so that CLI11 does not parse it as an option.
constexpr char token_mark = '\x01';

}  // namespace mailroom
