// The rules about what the schema needs to lose no token: triggers that fire, and sequences that are ahead.

#include <algorithm>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/wording.hpp"
#include "db/search_path.hpp"
#include "health/queue_health.hpp"
#include "queue/preconditions.hpp"
#include "schema/schema_objects.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::health {
namespace {

constexpr auto sequence_code = "sequence_behind";

QueueFinding finding_of(const status::SilentTrigger& silent, const schema::ExpectedTrigger& trigger,
                        const std::string& schema) {
  const auto name = std::string(trigger.name);
  return {trigger.is_vital ? Severity::failure : Severity::warning,
          "trigger_silent",
          fmt::format("{} on {} is {}: {}", trigger.name, trigger.table,
                      silent.is_missing ? "missing" : "disabled", trigger.consequence),
          {status::FixKind::make_trigger,
           silent.is_missing
               ? db::in_schema(schema::expected_objects().at({schema::ObjectKind::trigger, name}).statement,
                               schema)
               : queue::enable_trigger_statement(schema, trigger.table, trigger.name)}};
}

}  // namespace

std::optional<QueueFinding> judge_cursor(const std::string& queue, std::int64_t cursor, std::int64_t drawn) {
  if (cursor <= drawn) return std::nullopt;
  return QueueFinding{
      Severity::failure, sequence_code,
      fmt::format(
          "tokens_id_seq is at {}, behind the cursor of the queue {} at {}: every claim fails. Tokens were "
          "truncated or restored. The fix emits the tokens created since then and no others",
          with_thousands(drawn), queue, with_thousands(cursor)),
      status::fix_sequence()};
}

QueueFinding judge_sequence(const queue::TableSequence& sequence) {
  return {sequence.is_of_mailroom() ? Severity::failure : Severity::warning, sequence_code,
          fmt::format("{} is at {}, behind the newest id of {}, {}: {}", sequence.name,
                      with_thousands(sequence.position), sequence.table, with_thousands(sequence.newest),
                      sequence.consequence()),
          status::fix_sequence()};
}

std::vector<QueueFinding> judge_triggers(const status::TriggerStatus& status, const std::string& schema) {
  std::vector<QueueFinding> found;
  for (const auto& setting : status.replica) {
    found.push_back(
        {Severity::failure,
         "replication_role",
         fmt::format(
             "session_replication_role is replica for {}: no trigger fires, and accounts and messages that are "
             "inserted get no token",
             shown_text(setting.where)),
         {status::FixKind::fire_triggers, setting.fix}});
  }
  for (const auto& silent : status.silent) {
    const auto trigger = std::ranges::find(schema::expected_triggers(), std::string_view(silent.name),
                                           &schema::ExpectedTrigger::name);
    if (trigger != schema::expected_triggers().end()) found.push_back(finding_of(silent, *trigger, schema));
  }
  return found;
}

std::vector<QueueFinding> judge_shadows(const std::vector<status::Shadow>& shadows,
                                        const std::string& schema) {
  std::vector<QueueFinding> found;
  for (const auto& shadow : shadows) {
    const bool is_function = shadow.kind == "function";
    found.push_back(
        {Severity::failure,
         "shadowed",
         fmt::format(
             "the {} {} is not mailroom's, and the search path{} ({}) finds it before that of the schema {}: what is "
             "{} is not mailed",
             shadow.kind, shown_text(shadow.name),
             shadow.whose.empty() ? "" : " of " + shown_text(shadow.whose), shown_text(shadow.path), schema,
             is_function ? "asked for by it" : "inserted there"),
         {},
         is_function
             ? fmt::format(
                   "drop it, or give it another name; statements that name the schema, as {}.mailroom_send(…), find "
                   "mailroom's",
                   schema)
             : fmt::format(
                   "look at its rows, which nobody mailed; then drop it or give it another name, keep the tool that "
                   "made it from making it again, and write {}.mailroom_send(…) in the application",
                   schema)});
  }
  return found;
}

}  // namespace mailroom::health
