// Reads pg_class and pg_proc by name, which usually find nothing, and then the settings of search_path.

#include "status/shadows.hpp"

#include <fmt/format.h>

#include "db/values.hpp"
#include "schema/schema_objects.hpp"

namespace mailroom::status {
namespace {

/// $1: tables, $2: functions. Both have an index that begins with the name.
const std::string candidates_sql = R"(
SELECT c.relnamespace AS schema, quote_ident(c.relname) AS name,
  CASE c.relkind WHEN 'f' THEN 'foreign table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'view' ELSE 'table' END AS kind
FROM pg_class c
WHERE c.relname = ANY ($1::text[]::name[]) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
UNION
SELECT p.pronamespace, quote_ident(p.proname), 'function' FROM pg_proc p WHERE p.proname = ANY ($2::text[]::name[]))";

/// The search paths that sessions of this database begin with: of a role here, of a role everywhere, of the
/// database, of all. That of the session's own role is known even if the server's configuration has it.
const std::string paths_sql = R"(
SELECT DISTINCT ON (s.setrole) s.setrole AS role, substr(c.config, 13) AS path,
  CASE WHEN s.setrole <> 0 THEN 'the role ' || quote_ident(r.rolname) WHEN s.setdatabase = 0 THEN '' ELSE 'this database' END AS whose
FROM (SELECT setdatabase, setrole, setconfig FROM pg_db_role_setting
      UNION ALL SELECT 0, 0, ARRAY['search_path=' || CASE WHEN p.source = 'client' OR EXISTS (
                                                    SELECT FROM pg_db_role_setting o, unnest(o.setconfig) k, pg_roles u
                                                    WHERE o.setrole = u.oid AND u.rolname = session_user AND k LIKE 'search\_path=%')
                                                  THEN p.boot_val ELSE p.reset_val END]
      FROM pg_settings p WHERE p.name = 'search_path'
        AND NOT EXISTS (SELECT FROM pg_db_role_setting o, unnest(o.setconfig) k WHERE o.setrole = 0 AND k LIKE 'search\_path=%'
                          AND (o.setdatabase = 0 OR o.setdatabase = (SELECT d.oid FROM mailroom_this_database() d)))) s
  CROSS JOIN unnest(s.setconfig) c (config) LEFT JOIN pg_roles r ON r.oid = s.setrole
WHERE c.config LIKE 'search\_path=%' AND (s.setdatabase = 0 OR s.setdatabase = (SELECT d.oid FROM mailroom_this_database() d))
ORDER BY s.setrole, s.setdatabase DESC)";

/// The schemas of each path in their order. "$user" is the schema of the role, or, of everyone's path, that
/// of any role.
const std::string shadows_sql = R"(
WITH candidates AS MATERIALIZED ()" +
                                candidates_sql +
                                R"(),
here AS (SELECT oid FROM pg_namespace WHERE nspname = current_schema()),
foreigners AS (
  SELECT c.*, n.nspname,
    EXISTS (SELECT FROM pg_class b WHERE b.relnamespace = n.oid AND b.relname = 'mailroom_batches' AND b.relkind = 'r') AS is_place
  FROM candidates c JOIN pg_namespace n ON n.oid = c.schema
  WHERE n.oid <> (SELECT oid FROM here) AND n.nspname NOT LIKE 'pg\_%'),
paths AS ()" + paths_sql + R"( ),
places AS (
  SELECT p.role, p.path, p.whose, e.place, n.oid AS schema
  FROM paths p CROSS JOIN unnest(string_to_array(p.path, ',')) WITH ORDINALITY e (entry, place)
    JOIN pg_namespace n ON btrim(e.entry) = quote_ident(n.nspname) OR lower(btrim(e.entry)) = n.nspname
      OR btrim(e.entry) IN ('"$user"', '$user') AND EXISTS (
        SELECT FROM pg_roles r WHERE r.rolname = n.nspname AND (p.role = 0 OR r.oid = p.role))
  WHERE EXISTS (SELECT FROM foreigners))
SELECT DISTINCT ON (f.kind, f.schema, f.name) f.kind, quote_ident(f.nspname) || '.' || f.name AS name, p.path, p.whose
FROM foreigners f JOIN places p ON p.schema = f.schema
  LEFT JOIN places o ON o.role = p.role AND o.schema = (SELECT oid FROM here)
WHERE CASE WHEN f.is_place THEN p.place < o.place ELSE p.place < coalesce(o.place, 2147483647) END
ORDER BY f.kind DESC, f.schema, f.name, p.role)";

/// Names that begin with mailroom_: an application may have accounts, tokens and jobs of its own.
std::vector<std::string> own_names(const std::vector<std::string>& all) {
  std::vector<std::string> names;
  for (const auto& name : all) {
    if (name.starts_with("mailroom_")) names.push_back(name);
  }
  return names;
}

}  // namespace

std::vector<Shadow> find_shadows(pqxx::transaction_base& transaction) {
  static const auto tables = db::array_text(own_names(schema::mailroom_tables()));
  static const auto functions = db::array_text(own_names(schema::mailroom_functions()));
  std::vector<Shadow> shadows;
  for (const auto& row : db::Connection::execute(transaction, shadows_sql, tables, functions)) {
    shadows.push_back({.kind = row.text("kind"),
                       .name = row.text("name"),
                       .path = row.text("path"),
                       .whose = row.text("whose")});
  }
  return shadows;
}

}  // namespace mailroom::status
