#include "cmd/commands.hpp"

namespace mailroom {

const std::vector<Command>& commands() {
  static const std::vector<Command> all{migrate_command,  collect_command, verify_command,
                                        simulate_command, config_command,  tail_command};
  return all;
}

}  // namespace mailroom
