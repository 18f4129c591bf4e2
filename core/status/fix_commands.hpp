// The fixes that commands print, by what they do, safe to paste into a shell or psql.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "status/collector_process.hpp"

namespace mailroom::status {

/// What a fix does. tests/integration/fix_test.cpp has a situation for each, types the fix, and looks whether
/// the finding is gone: what only shows something is no fix, but a hint.
enum class FixKind {
  end_session,          ///< of another program, or of a consumer that is stuck
  drain_notifications,  ///< end the session that holds the queue of notifications, and have it emptied
  rollback_prepared,    ///< a prepared transaction that tokens wait for
  skip_standby,         ///< commit without the synchronous standby that is away
  continue_process,     ///< a consumer that is stopped
  resume_queue,
  create_queue,
  take_actions,   ///< let a queue take an action that none takes
  replay_batch,   ///< emit a dead batch again
  fix_sequence,   ///< of tokens, behind a cursor or a token
  order_ids,      ///< have a sequence give out ids one by one
  make_trigger,   ///< that is missing, or does not fire
  fire_triggers,  ///< where session_replication_role keeps them from it
  issue_tokens,   ///< of accounts and messages that have none
  make_object,    ///< an index or a constraint that is missing or invalid
  pin_search_path,
  migrate,
  make_functions,
  force_version,  ///< after another tool has failed
  find_schema,    ///< put mailroom's schema on the search_path
  grant,
  revoke,
  show_rows,  ///< that row security hides
  reset_setting,
  protect_file,
  make_key,
  name_channel,
  connect_directly,  ///< without a pooler
  set_clock,
  import_definitions,  ///< into RabbitMQ
};
constexpr FixKind last_fix_kind = FixKind::import_definitions;

/// A complete command that an operator types to fix a problem: for the shell, or SQL that ends with a
/// semicolon. Of several each is on a line. Empty if there is none.
class Fix : public std::string {
 public:
  Fix() = default;
  Fix(FixKind kind, std::string command) : std::string(std::move(command)), kind_(kind) {}

  FixKind kind() const { return kind_; }

 private:
  FixKind kind_{};
};

/// One for each command.
inline std::vector<Fix> fixes(FixKind kind, const std::vector<std::string>& commands) {
  std::vector<Fix> all;
  for (const auto& command : commands)
    all.emplace_back(kind, command);
  return all;
}

/// For a token sequence that is behind the cursor of any queue, or behind a token.
inline Fix fix_sequence() {
  return {FixKind::fix_sequence, "mailroom rewind-cursor --fix-sequence"};
}

Fix resume_queue(const std::string& queue);

/// Emits the tokens of a dead batch again that are still due; `schema` is quoted.
Fix replay_batch(const std::string& queue, std::int64_t batch, const std::string& schema);

std::string sql_literal(const std::string& text);

Fix end_session(int backend_pid);

/// Resumes a stopped process, by ssh unless its host is `here`.
Fix continue_process(const CollectorProcess& process, const std::string& here);

/// A hint: the command that lists the installed services of mailroom, on the host of `last` if that is known.
std::string find_service(const std::optional<CollectorProcess>& last, const std::string& here);

}  // namespace mailroom::status
