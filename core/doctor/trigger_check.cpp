// Do the triggers exist, and do they fire for the sessions that insert?

#include <fmt/format.h>

#include "base/printable.hpp"
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

/// Where triggers are kept from firing, and the statement that ends it: for this session, or for the sessions
/// of some role or database. A role's setting often holds for the whole server, so roles that may not insert
/// accounts here are left out.
constexpr const char* replica_sql = R"(
SELECT CASE WHEN s.setrole = 0 THEN 'this database' ELSE 'the role ' || r.rolname END,
  CASE WHEN s.setrole = 0 THEN format('ALTER DATABASE %I RESET session_replication_role;', current_database())
       WHEN s.setdatabase = 0 THEN format('ALTER ROLE %I RESET session_replication_role;', r.rolname)
       ELSE format('ALTER ROLE %I IN DATABASE %I RESET session_replication_role;', r.rolname, current_database()) END
FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole
WHERE 'session_replication_role=replica' = ANY (s.setconfig)
  AND (s.setdatabase = 0 OR s.setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))
  AND (s.setrole = 0 OR has_any_column_privilege(s.setrole, to_regclass('accounts'), 'INSERT'))
UNION ALL
SELECT 'the server', 'ALTER SYSTEM RESET session_replication_role; SELECT pg_reload_conf();'
FROM pg_settings
WHERE name = 'session_replication_role' AND reset_val = 'replica' AND source IN ('configuration file', 'command line')
ORDER BY 1)";

void judge_replication_role(Connection& connection, Findings& findings) {
  for (const auto& row : connection.run(replica_sql)) {
    findings.push_back(failure(
        fmt::format(
            "session_replication_role is replica for {}: no trigger fires, and accounts that are inserted "
            "get no token",
            shown_text(row[0].c_str())),
        {row[1].c_str()}));
  }
}

}  // namespace

Findings check_triggers(Subject& subject) {
  Findings findings;
  judge_replication_role(*subject.connection, findings);
  for (const auto& trigger : expected_triggers()) {
    const auto state =
        trigger_state(*subject.connection, std::string(trigger.table), std::string(trigger.name));
    if (state != TriggerState::enabled) findings.push_back(complaint(*subject.connection, trigger, state));
  }
  return or_fine(std::move(findings), fmt::format("all {} are enabled", expected_triggers().size()));
}

}  // namespace mailroom
