// Who may do more with mailroom's objects than the roles of docs/security.md, by whatever way the right came:
// a grant, default privileges, everyone, a column, a predefined role, a view.

#include <fmt/format.h>
#include <map>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "db/values.hpp"
#include "doctor/subject.hpp"
#include "schema/schema_objects.hpp"
#include "schema/undue_rights.hpp"

namespace mailroom::doctor {
namespace {

using schema::ObjectKind;
using schema::Privilege;
using schema::Privileges;

/// $2: mailroom's tables, $3: its functions. All grants on them, on their columns and sequences, and on the
/// functions that run with their owner's privileges. A superuser needs none, and neither does the owner.
constexpr const char* granted_sql = R"(
WITH relations AS (
  SELECT c.oid, c.relname, c.relowner, c.relacl, CASE c.relkind WHEN 'S' THEN 'sequence' ELSE 'table' END AS kind
  FROM pg_class c
  WHERE c.relnamespace = quote_ident($1)::regnamespace
    AND (c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname = ANY ($2::text[])
         OR c.relkind = 'S' AND (c.relname IN ('accounts_id_seq', 'tokens_id_seq') OR EXISTS (
           SELECT FROM pg_depend d JOIN pg_class t ON t.oid = d.refobjid
           WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass
             AND t.relnamespace = c.relnamespace AND t.relname = ANY ($2::text[]))))),
granted AS (
  SELECT c.kind, c.relname AS object, '' AS attribute, c.relowner AS owner, a.* FROM relations c, aclexplode(c.relacl) a
  UNION ALL
  SELECT c.kind, c.relname, t.attname, c.relowner, a.*
  FROM relations c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a WHERE NOT t.attisdropped
  UNION ALL
  SELECT 'function', p.proname, '', p.proowner, a.*
  FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
  WHERE p.pronamespace = quote_ident($1)::regnamespace AND p.prosecdef AND p.proname = ANY ($3::text[]))
SELECT DISTINCT g.kind, g.object, g.attribute, g.privilege_type AS privilege, coalesce(r.rolname, '') AS grantee,
  coalesce(quote_ident(r.rolname), 'PUBLIC') AS quoted, coalesce(r.rolname = current_user, false) AS is_own, CASE WHEN g.grantor = g.owner THEN '' ELSE quote_ident(o.rolname) END AS grantor
FROM granted g LEFT JOIN pg_roles r ON r.oid = g.grantee LEFT JOIN pg_roles o ON o.oid = g.grantor
WHERE g.grantee <> g.owner AND r.rolsuper IS NOT TRUE
ORDER BY 1, 2, 3, 4, 5)";

/// Whoever may create a function in the schema can have mailroom's own call it. The owner of the database may
/// anyway.
constexpr const char* creators_sql = R"(
SELECT coalesce(r.rolname, 'everyone') AS role,
  format('REVOKE CREATE ON SCHEMA %I FROM %s CASCADE;', n.nspname, coalesce(quote_ident(r.rolname), 'PUBLIC')) AS revoke
FROM pg_namespace n, aclexplode(n.nspacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE n.nspname = $1::text AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner AND r.rolsuper IS NOT TRUE
  AND r.rolname IS DISTINCT FROM 'pg_database_owner'
  AND a.grantee <> (SELECT c.relowner FROM pg_class c WHERE c.relname = 'tokens' AND c.relnamespace = n.oid)
ORDER BY 1)";

/// The members of the predefined roles that may read and write every table.
constexpr const char* predefined_sql = R"(
SELECT m.rolname AS role, p.rolname AS predefined, p.rolname = 'pg_write_all_data' AS writes,
  format('REVOKE %I FROM %I;', p.rolname, m.rolname) AS revoke
FROM pg_auth_members a JOIN pg_roles p ON p.oid = a.roleid JOIN pg_roles m ON m.oid = a.member
WHERE p.rolname IN ('pg_read_all_data', 'pg_write_all_data') AND NOT m.rolsuper
  AND m.oid <> (SELECT c.relowner FROM pg_class c WHERE c.relname = 'tokens' AND c.relnamespace = quote_ident($1)::regnamespace)
ORDER BY 2, 1)";

/// Views of others on what is in mails and on the secrets of tokens, also by way of another view, and who but
/// their owner may read them: a view reads with the rights of its owner.
constexpr const char* views_sql = R"(
WITH RECURSIVE readers AS (
  SELECT r.ev_class AS view, c.relname::text AS source
  FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class c ON c.oid = d.refobjid
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND r.ev_class <> c.oid
    AND c.relnamespace = quote_ident($1)::regnamespace
    AND (c.relname = 'tokens' AND a.attname IN ('secret', 'code')
         OR c.relname = 'mailroom_attachments' AND a.attname = 'content'
         OR c.relname = 'mailroom_messages' AND a.attname IN ('headers', 'data', 'subject', 'text', 'html', 'raw'))
  UNION
  SELECT r.ev_class, v.source
  FROM readers v JOIN pg_depend d ON d.refobjid = v.view AND d.refclassid = 'pg_class'::regclass
  JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass AND r.ev_class <> v.view)
SELECT v.oid::regclass::text AS view, coalesce(g.rolname, 'everyone') AS reader, g.rolname IS NULL AS is_everyone,
  string_agg(DISTINCT s.source, ' and ' ORDER BY s.source) AS sources,
  format('REVOKE SELECT ON %s FROM %s;', v.oid::regclass, coalesce(quote_ident(g.rolname), 'PUBLIC')) AS revoke
FROM readers s JOIN pg_class v ON v.oid = s.view, LATERAL (
  SELECT * FROM aclexplode(v.relacl)
  UNION ALL SELECT e.* FROM pg_attribute t, aclexplode(t.attacl) e WHERE t.attrelid = v.oid) a
LEFT JOIN pg_roles g ON g.oid = a.grantee
WHERE a.privilege_type = 'SELECT' AND a.grantee <> v.relowner AND g.rolsuper IS NOT TRUE
  AND NOT EXISTS (SELECT FROM pg_options_to_table(v.reloptions) o
                  WHERE o.option_name = 'security_invoker' AND o.option_value::boolean)
GROUP BY v.oid, g.rolname ORDER BY 1, 2)";

/// What a role was granted.
struct Holder {
  std::string quoted{};  ///< its name in SQL
  bool is_own = false;   ///< this session's role, which is asked to have what a collector needs
  Privileges held{};
  std::map<std::string, Privileges> by_grantor{};  ///< the owner has no name
};

/// By the role's name; everyone has none.
using Holders = std::map<std::string, Holder>;

ObjectKind granted_kind(const std::string& word) {
  return word == "sequence"   ? ObjectKind::sequence
         : word == "function" ? ObjectKind::function
                              : ObjectKind::table;
}

Holders read_holders(db::Connection& connection) {
  Holders holders;
  for (const auto& row : qualified_rows(connection, granted_sql, db::array_text(schema::mailroom_tables()),
                                        db::array_text(schema::mailroom_functions()))) {
    const Privilege privilege{granted_kind(row.text("kind")), row.text("object"), row.text("attribute"),
                              row.text("privilege")};
    auto& holder = holders[row.text("grantee")];
    holder.quoted = row.text("quoted");
    holder.is_own = row.flag("is_own");
    holder.held.insert(privilege);
    holder.by_grantor[row.text("grantor")].insert(privilege);
  }
  return holders;
}

/// True if an adopted database may have given it to an application before: no mail can be read or asked for
/// with it.
bool is_of_original(const Privilege& privilege) {
  return privilege.kind != ObjectKind::function &&
         is_one_of(privilege.object,
                   {"accounts", "tokens", "jobs", "schema_migrations", "accounts_id_seq", "tokens_id_seq"});
}

/// What `holder` got from a role that loses it, and so passes nothing on, needs no statement.
std::vector<std::string> revokes_for(const Holder& holder, const Privileges& undue,
                                     const std::string& own_schema,
                                     const std::map<std::string, Privileges>& undue_by_quoted) {
  std::vector<std::string> statements;
  for (const auto& [grantor, granted] : holder.by_grantor) {
    Privileges taken;
    for (const auto& privilege : granted) {
      const auto passed_on = undue_by_quoted.find(grantor);
      const bool ends_anyway = passed_on != undue_by_quoted.end() && passed_on->second.count(privilege) > 0;
      if (undue.count(privilege) > 0 && !ends_anyway) taken.insert(privilege);
    }
    for (const auto& statement : schema::revoke_statements(taken, granted, own_schema, holder.quoted)) {
      statements.push_back(grantor.empty() ? statement
                                           : fmt::format("SET ROLE {}; {} RESET ROLE;", grantor, statement));
    }
  }
  return statements;
}

void judge_holders(db::Connection& connection, Findings& findings) {
  const auto holders = read_holders(connection);
  std::map<std::string, Privileges> undue_by_quoted;
  for (const auto& [name, holder] : holders)
    undue_by_quoted[holder.quoted] = schema::undue_rights(
        name, holder.held, holder.is_own ? schema::allowed_to("collector") : Privileges{});
  const auto own_schema = qualified_rows(connection, "SELECT quote_ident($1)").text();
  for (const auto& [name, holder] : holders) {
    const auto& undue = undue_by_quoted.at(holder.quoted);
    if (undue.empty()) continue;
    const auto text = fmt::format("{} has what no role of docs/security.md is given: {}",
                                  name.empty() ? "everyone" : shown_text(name), schema::described(undue));
    const auto fix =
        status::fixes(status::FixKind::revoke, revokes_for(holder, undue, own_schema, undue_by_quoted));
    const auto* hint =
        "make it a member of the role that it needs (mailroom init --roles makes them), and give it nothing by default "
        "privileges or ON ALL TABLES";
    findings.push_back(std::ranges::all_of(undue, is_of_original) ? warning(text, fix, hint)
                                                                  : failure(text, fix, hint));
  }
}

void judge_creators(db::Connection& connection, Findings& findings) {
  for (const auto& row : qualified_rows(connection, creators_sql)) {
    findings.push_back(warning(
        fmt::format(
            "{} may create functions in mailroom's schema, which mailroom's own could call instead of "
            "the server's",
            shown_text(row.text("role"))),
        {{status::FixKind::revoke, row.text("revoke")}},
        "where an application has its own tables, give mailroom a schema of its own"));
  }
}

void judge_predefined(db::Connection& connection, Findings& findings) {
  for (const auto& row : qualified_rows(connection, predefined_sql)) {
    const auto role = shown_text(row.text("role"));
    if (row.flag("writes")) {
      findings.push_back(
          failure(fmt::format("{} may write every table, as a member of pg_write_all_data", role),
                  {{status::FixKind::revoke, row.text("revoke")}}));
      continue;
    }
    findings.push_back(warning(
        fmt::format("{} may read every mail and the secrets of tokens, as a member of pg_read_all_data",
                    role),
        {}, "right for a role that makes dumps; for any other: " + row.text("revoke")));
  }
}

/// A view for one role may be meant; one for everyone is not.
void judge_views(db::Connection& connection, Findings& findings) {
  for (const auto& row : qualified_rows(connection, views_sql)) {
    const auto text = fmt::format("{} may read {} by the view {}", shown_text(row.text("reader")),
                                  row.text("sources"), shown_text(row.text("view")));
    findings.push_back(
        row.flag("is_everyone")
            ? failure(text, {{status::FixKind::revoke, row.text("revoke")}})
            : warning(text, {}, "right for who may read every mail; for any other: " + row.text("revoke")));
  }
}

}  // namespace

Findings judge_others(db::Connection& connection) {
  Findings findings;
  judge_holders(connection, findings);
  judge_views(connection, findings);
  judge_creators(connection, findings);
  judge_predefined(connection, findings);
  return findings;
}

}  // namespace mailroom::doctor
