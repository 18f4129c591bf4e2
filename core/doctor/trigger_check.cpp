#include <fmt/format.h>

#include "db/qualified_name.hpp"
#include "doctor/schema_objects.hpp"
#include "doctor/subject.hpp"
#include "queue/preconditions.hpp"

namespace mailroom {
namespace {

Finding complaint(Connection& connection, const ExpectedTrigger& trigger, TriggerState state) {
  const auto name = std::string(trigger.name);
  const auto table = std::string(trigger.table);
  const bool missing = state == TriggerState::missing;
  const auto reason =
      fmt::format("{} on {} is {}: {}", name, table, missing ? "missing" : "disabled", trigger.consequence);
  const auto fix = missing ? in_schema(expected_objects().at({ObjectKind::trigger, name}).statement,
                                       quoted_schema(connection))
                           : enable_trigger_statement(connection, table, name);
  return trigger.is_vital ? failure(reason, {fix}) : warning(reason, {fix});
}

}  // namespace

Findings check_triggers(Subject& subject) {
  Findings findings;
  for (const auto& trigger : expected_triggers()) {
    const auto state =
        trigger_state(*subject.connection, std::string(trigger.table), std::string(trigger.name));
    if (state != TriggerState::enabled) findings.push_back(complaint(*subject.connection, trigger, state));
  }
  return or_fine(std::move(findings), fmt::format("all {} are enabled", expected_triggers().size()));
}

}  // namespace mailroom
