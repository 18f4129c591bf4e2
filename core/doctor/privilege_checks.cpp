#include <fmt/format.h>

#include "doctor/subject.hpp"
#include "queue/preconditions.hpp"

namespace mailroom {
namespace {

/// The privileges that a collector needs on each object and lacks; a claim runs with its caller's privileges.
/// The sequence of mailroom_gaps is not listed: an identity column needs no privilege on its sequence.
constexpr const char* missing_sql = R"(
SELECT n.object,
  format('GRANT %s ON %s TO %I;', string_agg(p.privilege, ', ' ORDER BY p.n),
         CASE n.kind WHEN 'S' THEN 'SEQUENCE ' ELSE '' END || quote_ident(n.object), current_user)
FROM (VALUES
    ('schema_migrations', 'r', '{SELECT}'::text[]),
    ('accounts', 'r', '{SELECT}'),
    ('tokens', 'r', '{SELECT}'),
    ('jobs', 'r', '{SELECT,UPDATE}'),
    ('mailroom_batches', 'r', '{SELECT,INSERT,UPDATE}'),
    ('mailroom_gaps', 'r', '{SELECT,INSERT,UPDATE,DELETE}'),
    ('tokens_id_seq', 'S', '{SELECT}'),
    ('mailroom_batches_id_seq', 'S', '{USAGE}')) n (object, kind, privileges)
  JOIN pg_class c ON c.relname = n.object AND c.relnamespace = quote_ident(current_schema())::regnamespace,
  unnest(n.privileges) WITH ORDINALITY p (privilege, n)
WHERE NOT CASE n.kind WHEN 'S' THEN has_sequence_privilege(c.oid, p.privilege)
                      ELSE has_table_privilege(c.oid, p.privilege) END
GROUP BY n.object, n.kind
ORDER BY n.kind DESC, n.object)";

constexpr const char* executable_functions_sql = R"(
SELECT p.proname, format('GRANT EXECUTE ON FUNCTION %s TO %I;', p.oid::regprocedure, current_user)
FROM pg_proc p
WHERE p.pronamespace = quote_ident(current_schema())::regnamespace AND p.proname LIKE 'mailroom\_%'
  AND NOT has_function_privilege(p.oid, 'EXECUTE')
ORDER BY 1)";

std::string joined(const std::string& list, const std::string& item) {
  return list.empty() ? item : list + ", " + item;
}

/// Reports all missing privileges in one finding, with one statement for each object.
Findings judge_grants(Connection& connection, const std::string& role) {
  std::string lacks;
  std::vector<std::string> fix;
  for (const auto& row : connection.run(missing_sql)) {
    lacks = joined(lacks, row[0].c_str());
    fix.emplace_back(row[1].c_str());
  }
  for (const auto& row : connection.run(executable_functions_sql)) {
    lacks = joined(lacks, row[0].c_str());
    fix.emplace_back(row[1].c_str());
  }
  if (fix.empty()) return {};
  return {failure(fmt::format("{} lacks what collect needs on {}", role, lacks), std::move(fix))};
}

Findings judge_row_security(Connection& connection, const std::string& role) {
  const auto hidden = hidden_rows(connection);
  if (hidden.tables.empty()) return {};
  return {failure(
      fmt::format("row security hides rows of {} from {}, so collect refuses to run", hidden.tables, role),
      {hidden.fix})};
}

Findings judge_statistics(Connection& connection, const std::string& role) {
  const auto row = connection.run(
      "SELECT pg_has_role('pg_read_all_stats', 'USAGE'), format('GRANT pg_monitor TO %I;', current_user)")[0];
  if (row[0].as<bool>()) return {};
  return {warning(
      fmt::format("{} cannot see other sessions, so status cannot name a session that holds back tokens",
                  role),
      {row[1].c_str()})};
}

}  // namespace

Findings check_privileges(Subject& subject) {
  if (!subject.has_tables) return {not_checked("the tables of the queue do not exist")};
  auto& connection = *subject.connection;
  const auto role = std::string(connection.run("SELECT current_user")[0][0].c_str());
  Findings all;
  for (const auto judge_part : {judge_grants, judge_row_security, judge_statistics}) {
    auto findings = judge_part(connection, role);
    std::move(findings.begin(), findings.end(), std::back_inserter(all));
  }
  return or_fine(std::move(all), role + " has the privileges for collect, and can see other sessions");
}

}  // namespace mailroom
