// The subcommands, from which the command line, the help and the man pages are made.
#pragma once

#include <vector>

#include "cmd/command.hpp"

namespace mailroom {

/// All subcommands, in help order.
const std::vector<Command>& commands();

extern const Command migrate_command;
extern const Command collect_command;
extern const Command send_command;
extern const Command verify_command;
extern const Command status_command;
extern const Command tail_command;
extern const Command audit_command;
extern const Command rewind_cursor_command;
extern const Command queue_command;
extern const Command suspend_command;
extern const Command template_command;
extern const Command prune_command;
extern const Command reconcile_command;
extern const Command doctor_command;
extern const Command simulate_command;
extern const Command config_command;

}  // namespace mailroom
