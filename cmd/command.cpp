// Lists the subcommands in the order of the help.

#include "cmd/command.hpp"

namespace mailroom {

const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      migrate_command, collect_command,  send_command,     message_command,       verify_command,
      status_command,  tail_command,     audit_command,    resend_command,        revoke_command,
      suspend_command, queue_command,    action_command,   rewind_cursor_command, reconcile_command,
      prune_command,   template_command, doctor_command,   simulate_command,      config_command,
      adopt_command,   init_command,     outcomes_command, bounce_command,        suppression_command};
  return all;
}

}  // namespace mailroom
