#pragma once

#include <vector>

#include "cmd/command.hpp"

namespace mailroom {

/// Every subcommand, in the order of the help.
const std::vector<Command>& commands();

extern const Command migrate_command;
extern const Command collect_command;
extern const Command verify_command;
extern const Command simulate_command;
extern const Command config_command;
extern const Command tail_command;

}  // namespace mailroom
