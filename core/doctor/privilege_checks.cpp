// What this role lacks for collect, and what hides rows and sessions from it.

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "db/values.hpp"
#include "doctor/subject.hpp"
#include "schema/roles.hpp"
#include "schema/schema_objects.hpp"

namespace mailroom::doctor {
namespace {

/// The privileges that a collector needs and lacks; a claim runs with its caller's privileges. $2 to $5:
/// kind, object, privilege and columns of each.
constexpr const char* missing_sql = R"(
SELECT n.object,
  format('GRANT %s ON %s%I.%I TO %I;', string_agg(n.privilege || coalesce(' (' || n.columns || ')', ''), ', ' ORDER BY n.place),
         CASE n.kind WHEN 'sequence' THEN 'SEQUENCE ' ELSE '' END, $1::text, n.object, current_user) AS grant
FROM (
  SELECT kind, object, privilege, nullif(columns, '') AS columns, place
  FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY u (kind, object, privilege, columns, place)) n
  JOIN pg_class c ON c.relname = n.object AND c.relnamespace = quote_ident($1)::regnamespace
WHERE NOT CASE WHEN n.kind = 'sequence' THEN has_sequence_privilege(c.oid, n.privilege)
               WHEN n.columns IS NULL THEN has_table_privilege(c.oid, n.privilege)
               ELSE (SELECT bool_and(has_column_privilege(c.oid, btrim(k), n.privilege))
                     FROM unnest(string_to_array(n.columns, ',')) k) END
GROUP BY n.object, n.kind
ORDER BY n.kind DESC, n.object)";

/// $2: the names of mailroom's functions; an application may have functions with similar names. Of those that
/// run with their owner's privileges, a consumer needs $3.
constexpr const char* executable_functions_sql = R"(
SELECT p.proname AS object, format('GRANT EXECUTE ON FUNCTION %s TO %I;', p.oid::regprocedure, current_user) AS grant
FROM pg_proc p
WHERE p.pronamespace = quote_ident($1)::regnamespace AND p.proname = ANY ($2::text[])
  AND p.prorettype <> 'trigger'::regtype AND NOT has_function_privilege(p.oid, 'EXECUTE')
  AND (NOT p.prosecdef OR p.proname = ANY ($3::text[]))
ORDER BY 1)";

/// What a collector needs on tables and sequences, as one list for each parameter of missing_sql.
struct CollectorNeeds {
  std::vector<std::string> kinds{};
  std::vector<std::string> objects{};
  std::vector<std::string> privileges{};
  std::vector<std::string> columns{};
  std::vector<std::string> functions{};
};

CollectorNeeds needs_of_collector() {
  CollectorNeeds needs;
  for (const auto& grant : schema::grants_of("collector")) {
    if (grant.kind == schema::ObjectKind::function) {
      needs.functions.push_back(grant.object);
      continue;
    }
    needs.kinds.emplace_back(schema::object_kind_word(grant.kind));
    needs.objects.push_back(grant.object);
    needs.privileges.push_back(grant.privilege);
    needs.columns.push_back(joined(grant.columns, ", "));
  }
  return needs;
}

/// Reports all missing privileges in one finding, with one statement for each object.
void judge_grants(db::Connection& connection, const std::string& role, Findings& findings) {
  std::vector<std::string> lacks;
  std::vector<std::string> fix;
  const auto needs = needs_of_collector();
  for (const auto& rows :
       {qualified_rows(connection, missing_sql, db::array_text(needs.kinds), db::array_text(needs.objects),
                       db::array_text(needs.privileges), db::quoted_array_text(needs.columns)),
        qualified_rows(connection, executable_functions_sql, db::array_text(schema::mailroom_functions()),
                       db::array_text(needs.functions))}) {
    for (const auto& row : rows) {
      lacks.push_back(row.text("object"));
      fix.push_back(row.text("grant"));
    }
  }
  if (fix.empty()) return;
  findings.push_back(failure(fmt::format("{} lacks what collect needs on {}", role, joined(lacks, ", ")),
                             status::fixes(status::FixKind::grant, fix)));
}

void judge_row_security(db::Connection& connection, const std::string& role, Findings& findings) {
  const auto hidden = schema::hidden_rows(connection, schema::tables_of_consumers());
  if (!hidden.tables.empty()) {
    findings.push_back(failure(
        fmt::format("row security hides rows of {} from {}, so collect refuses to run", hidden.tables, role),
        {{status::FixKind::show_rows, hidden.fix}}));
    return;
  }
  const auto others = schema::hidden_rows(connection, schema::mailroom_tables());
  if (others.tables.empty()) return;
  findings.push_back(warning(
      fmt::format("row security hides rows of {} from {}, so the commands for operators refuse to run",
                  others.tables, role),
      {{status::FixKind::show_rows, others.fix}}));
}

void judge_statistics(db::Connection& connection, const std::string& role, Findings& findings) {
  const auto row = connection.run(
      "SELECT pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all, "
      "format('GRANT pg_monitor TO %I;', current_user) AS monitor_grant, "
      "has_table_privilege('pg_catalog.pg_stat_activity', 'SELECT') AS may_read, "
      "format('GRANT SELECT ON pg_catalog.pg_stat_activity TO %I;', current_user) AS read_grant")[0];
  if (!row.flag("may_read")) {
    findings.push_back(warning(
        fmt::format(
            "{} may not read pg_stat_activity, so status fails, and metrics show nothing of the database",
            role),
        {{status::FixKind::grant, row.text("read_grant")}}));
  }
  if (row.flag("sees_all")) return;
  findings.push_back(warning(
      fmt::format("{} cannot see other sessions, so status cannot name a session that holds back tokens",
                  role),
      {{status::FixKind::grant, row.text("monitor_grant")}}));
}

/// Who may do everything since he may act as the owner, as a clause to add; empty if there is nobody.
std::string members_of_owner(db::Connection& connection) {
  const auto rows = qualified_rows(connection, R"(
SELECT quote_ident(o.rolname) AS owner, string_agg(quote_ident(m.rolname), ', ' ORDER BY m.rolname) AS members
FROM pg_class c JOIN pg_roles o ON o.oid = c.relowner JOIN pg_auth_members a ON a.roleid = o.oid JOIN pg_roles m ON m.oid = a.member
WHERE c.relname = 'tokens' AND c.relnamespace = quote_ident($1)::regnamespace AND NOT m.rolsuper
GROUP BY o.rolname)");
  if (rows.empty()) return {};
  return fmt::format("; members of the owner {}, who may do everything: {}",
                     shown_text(rows[0].text("owner")), shown_text(rows[0].text("members")));
}

}  // namespace

Findings check_privileges(Subject& subject) {
  if (!subject.has_tables) return {not_checked("the tables of the queue do not exist")};
  auto& connection = *subject.connection;
  const auto role = connection.run("SELECT current_user").text();
  Findings findings;
  judge_grants(connection, role, findings);
  for (auto& finding : judge_others(connection))
    findings.push_back(std::move(finding));
  judge_row_security(connection, role, findings);
  judge_statistics(connection, role, findings);
  return or_fine(std::move(findings), role + " has the privileges for collect, and can see other sessions" +
                                          members_of_owner(connection));
}

}  // namespace mailroom::doctor
