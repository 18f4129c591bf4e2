// The subcommands, of which the command line, the help and the man pages are made, and the form of each.
#pragma once

#include <functional>
#include <vector>

#include "cmd/syntax/command_syntax.hpp"
#include "cmd/terminal/context.hpp"

namespace mailroom::cmd {

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

/// Subcommands that the help shows together.
struct CommandGroup {
  const char* title;
  std::vector<Command> commands;
};

/// All subcommands, in help order.
const std::vector<CommandGroup>& command_groups();
const std::vector<Command>& commands();

extern const Command migrate_command;
extern const Command collect_command;
extern const Command send_command;
extern const Command message_command;
extern const Command verify_command;
extern const Command status_command;
extern const Command submission_command;
extern const Command desk_command;
extern const Command sendmail_command;
extern const Command tail_command;
extern const Command audit_command;
extern const Command resend_command;
extern const Command revoke_command;
extern const Command rewind_cursor_command;
extern const Command action_command;
extern const Command topic_command;
extern const Command key_command;
extern const Command queue_command;
extern const Command suspend_command;
extern const Command template_command;
extern const Command prune_command;
extern const Command reconcile_command;
extern const Command doctor_command;
extern const Command simulate_command;
extern const Command config_command;
extern const Command adopt_command;
extern const Command init_command;
extern const Command outcomes_command;
extern const Command bounce_command;
extern const Command suppression_command;

}  // namespace mailroom::cmd
