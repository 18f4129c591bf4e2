// Lists the subcommands in the groups and the order of the help: what mails, then the rest.

#include "cmd/command.hpp"

namespace mailroom::cmd {

const std::vector<CommandGroup>& command_groups() {
  static const std::vector<CommandGroup> groups{
      {"Mail",
       {init_command, migrate_command, send_command, submission_command, sendmail_command, message_command,
        template_command, action_command, topic_command, key_command}},
      {"What became of it",
       {audit_command, status_command, tail_command, outcomes_command, bounce_command, suppression_command,
        reconcile_command, doctor_command, desk_command}},
      {"Operation",
       {queue_command, resend_command, revoke_command, rewind_cursor_command, prune_command, adopt_command,
        config_command}},
      {"Accounts and tokens", {collect_command, verify_command, suspend_command, simulate_command}}};
  return groups;
}

const std::vector<Command>& commands() {
  static const auto all = [] {
    std::vector<Command> flat;
    for (const auto& group : command_groups())
      flat.insert(flat.end(), group.commands.begin(), group.commands.end());
    return flat;
  }();
  return all;
}

}  // namespace mailroom::cmd
