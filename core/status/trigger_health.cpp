// The rules about triggers that do not fire.

#include <algorithm>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "db/qualified_name.hpp"
#include "queue/preconditions.hpp"
#include "schema/schema_objects.hpp"
#include "status/queue_health.hpp"

namespace mailroom {
namespace {

QueueFinding finding_of(const SilentTrigger& silent, const ExpectedTrigger& trigger,
                        const std::string& schema) {
  const auto name = std::string(trigger.name);
  return {trigger.is_vital ? Severity::failure : Severity::warning, "trigger_silent",
          fmt::format("{} on {} is {}: {}", trigger.name, trigger.table,
                      silent.is_missing ? "missing" : "disabled", trigger.consequence),
          silent.is_missing ? in_schema(expected_objects().at({ObjectKind::trigger, name}).statement, schema)
                            : enable_trigger_statement(schema, trigger.table, trigger.name)};
}

}  // namespace

std::vector<QueueFinding> judge_triggers(const TriggerStatus& status, const std::string& schema) {
  std::vector<QueueFinding> found;
  for (const auto& setting : status.replica) {
    found.push_back(
        {Severity::failure, "replication_role",
         fmt::format(
             "session_replication_role is replica for {}: no trigger fires, and accounts that are inserted "
             "get no token",
             shown_text(setting.where)),
         setting.fix});
  }
  for (const auto& silent : status.silent) {
    const auto trigger =
        std::ranges::find(expected_triggers(), std::string_view(silent.name), &ExpectedTrigger::name);
    if (trigger != expected_triggers().end()) found.push_back(finding_of(silent, *trigger, schema));
  }
  return found;
}

}  // namespace mailroom
