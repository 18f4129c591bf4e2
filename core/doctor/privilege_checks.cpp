// What this role lacks for collect, and what others may do that nobody meant to allow.

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "db/values.hpp"
#include "doctor/subject.hpp"
#include "schema/schema_objects.hpp"

namespace mailroom::doctor {
namespace {

/// The privileges that a collector needs on each object and lacks; a claim runs with its caller's privileges.
/// The sequence of mailroom_gaps is not listed: an identity column needs no privilege on its sequence.
constexpr const char* missing_sql = R"(
SELECT n.object,
  format('GRANT %s ON %s TO %I;', string_agg(p.privilege, ', ' ORDER BY p.n),
         CASE n.kind WHEN 'S' THEN 'SEQUENCE ' ELSE '' END || format('%I.%I', $1::text, n.object), current_user) AS grant
FROM (VALUES
    ('schema_migrations', 'r', '{SELECT}'::text[]),
    ('accounts', 'r', '{SELECT}'),
    ('tokens', 'r', '{SELECT}'),
    ('jobs', 'r', '{SELECT,UPDATE}'),
    ('mailroom_batches', 'r', '{SELECT,INSERT,UPDATE}'),
    ('mailroom_gaps', 'r', '{SELECT,INSERT,UPDATE,DELETE}'),
    ('mailroom_deliveries', 'r', '{SELECT,INSERT,UPDATE}'),
    ('mailroom_queues', 'r', '{SELECT}'),
    ('mailroom_budgets', 'r', '{SELECT,UPDATE}'),
    ('mailroom_sinks', 'r', '{SELECT,INSERT,UPDATE,DELETE}'),
    ('mailroom_actions', 'r', '{SELECT}'),
    ('mailroom_messages', 'r', '{SELECT}'),
    ('mailroom_attachments', 'r', '{SELECT}'),
    ('mailroom_schedule', 'r', '{SELECT}'),
    ('mailroom_suppressions', 'r', '{SELECT}'),
    ('tokens_id_seq', 'S', '{SELECT}'),
    ('mailroom_batches_id_seq', 'S', '{USAGE}')) n (object, kind, privileges)
  JOIN pg_class c ON c.relname = n.object AND c.relnamespace = quote_ident($1)::regnamespace,
  unnest(n.privileges) WITH ORDINALITY p (privilege, n)
WHERE NOT CASE n.kind WHEN 'S' THEN has_sequence_privilege(c.oid, p.privilege)
                      ELSE has_table_privilege(c.oid, p.privilege) END
GROUP BY n.object, n.kind
ORDER BY n.kind DESC, n.object)";

/// $2: the names of mailroom's functions; an application may have functions with similar names. Of those that
/// run with their owner's privileges, a consumer needs two.
constexpr const char* executable_functions_sql = R"(
SELECT p.proname AS object, format('GRANT EXECUTE ON FUNCTION %s TO %I;', p.oid::regprocedure, current_user) AS grant
FROM pg_proc p
WHERE p.pronamespace = quote_ident($1)::regnamespace AND p.proname = ANY ($2::text[])
  AND p.prorettype <> 'trigger'::regtype AND NOT has_function_privilege(p.oid, 'EXECUTE')
  AND (NOT p.prosecdef OR p.proname IN ('mailroom_release', 'mailroom_record_event'))
ORDER BY 1)";

std::vector<std::string> own_functions() {
  std::vector<std::string> names;
  for (const auto& [key, object] : schema::expected_objects()) {
    if (key.kind == schema::ObjectKind::function) names.push_back(key.name);
  }
  return names;
}

/// Reports all missing privileges in one finding, with one statement for each object.
void judge_grants(db::Connection& connection, const std::string& role, Findings& findings) {
  std::vector<std::string> lacks;
  std::vector<std::string> fix;
  for (const auto& rows :
       {qualified_rows(connection, missing_sql),
        qualified_rows(connection, executable_functions_sql, db::array_text(own_functions()))}) {
    for (const auto& row : rows) {
      lacks.push_back(row.text("object"));
      fix.push_back(row.text("grant"));
    }
  }
  if (fix.empty()) return;
  findings.push_back(failure(fmt::format("{} lacks what collect needs on {}", role, joined(lacks, ", ")),
                             status::fixes(status::FixKind::grant, fix)));
}

/// $2: the names of mailroom's functions. Those that run with their owner's privileges, and to whom else the
/// owner lets them be executed: attached to a trigger of any table, those of mailroom's tables would create
/// tokens for any account. The others are given to producers and consumers, but not to everyone. What such a
/// role has passed on ends with it.
constexpr const char* open_functions_sql = R"(
SELECT p.proname, coalesce(r.rolname, 'everyone') AS role,
  format('REVOKE EXECUTE ON FUNCTION %s FROM %s CASCADE;', p.oid::regprocedure,
         coalesce(quote_ident(r.rolname), 'PUBLIC')) AS revoke,
  EXISTS (
    SELECT FROM pg_default_acl d, aclexplode(d.defaclacl) x
    WHERE d.defaclobjtype = 'f' AND d.defaclnamespace IN (0, p.pronamespace) AND d.defaclrole = p.proowner
      AND x.grantee = a.grantee) AS is_default
FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE p.pronamespace = quote_ident($1)::regnamespace AND p.prosecdef AND p.proname = ANY ($2::text[])
  AND a.grantee <> p.proowner AND a.grantor = p.proowner AND (a.grantee = 0 OR p.proname LIKE 'trg\_%')
ORDER BY 1, 2)";

void judge_open_functions(db::Connection& connection, Findings& findings) {
  for (const auto& row : qualified_rows(connection, open_functions_sql, db::array_text(own_functions()))) {
    findings.push_back(
        failure(fmt::format("{} may execute {}, which runs with its owner's privileges",
                            shown_text(row.text("role")), row.text("proname")),
                {{status::FixKind::revoke, row.text("revoke")}},
                row.flag("is_default")
                    ? "default privileges give it to new functions: ALTER DEFAULT PRIVILEGES takes them away"
                    : ""));
  }
}

/// Roles, or everyone, that may read or write tokens because default privileges gave them every table of
/// their owner.
constexpr const char* intruders_sql = R"(
SELECT coalesce(r.rolname, 'everyone') AS role, bool_or(a.privilege_type = 'SELECT') AS may_read,
  bool_or(a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE')) AS may_write,
  format('REVOKE ALL ON %s FROM %s CASCADE;', c.oid::regclass, coalesce(quote_ident(r.rolname), 'PUBLIC')) AS revoke
FROM pg_class c, aclexplode(c.relacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE c.relnamespace = quote_ident($1)::regnamespace AND c.relname = 'tokens' AND NOT c.relrowsecurity
  AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') AND a.grantee <> c.relowner
  AND EXISTS (
    SELECT FROM pg_default_acl d, aclexplode(d.defaclacl) x
    WHERE d.defaclobjtype = 'r' AND d.defaclnamespace IN (0, c.relnamespace) AND d.defaclrole = c.relowner
      AND x.grantee = a.grantee AND x.privilege_type = a.privilege_type)
GROUP BY r.rolname, c.oid
ORDER BY 1)";

void judge_intruders(db::Connection& connection, Findings& findings) {
  for (const auto& row : qualified_rows(connection, intruders_sql)) {
    std::vector<std::string> may;
    if (row.flag("may_read")) may.emplace_back("read the secrets and codes of tokens");
    if (row.flag("may_write")) may.emplace_back("write tokens of any account");
    findings.push_back(warning(
        fmt::format("{} may {}, by default privileges", shown_text(row.text("role")), joined(may, " and ")),
        {{status::FixKind::revoke, row.text("revoke")}},
        "give each role what docs/security.md lists, and no default privileges"));
  }
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

}  // namespace

Findings check_privileges(Subject& subject) {
  if (!subject.has_tables) return {not_checked("the tables of the queue do not exist")};
  auto& connection = *subject.connection;
  const auto role = connection.run("SELECT current_user").text();
  Findings findings;
  judge_grants(connection, role, findings);
  judge_open_functions(connection, findings);
  judge_intruders(connection, findings);
  judge_row_security(connection, role, findings);
  judge_statistics(connection, role, findings);
  return or_fine(std::move(findings), role + " has the privileges for collect, and can see other sessions");
}

}  // namespace mailroom::doctor
