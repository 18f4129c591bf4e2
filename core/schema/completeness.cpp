// The queries on the rows and on the owners.

#include "schema/completeness.hpp"

#include "db/search_path.hpp"
#include "db/values.hpp"
#include "schema/schema_objects.hpp"

namespace mailroom::schema {

std::vector<std::string> missing_rows(db::Connection& connection) {
  const auto sees_all = connection.run(R"(
SELECT bool_and(coalesce(has_table_privilege(t.oid, 'SELECT') AND NOT row_security_active(t.oid), false))
FROM (SELECT to_regclass(quote_ident(current_schema()) || '.' || name)::oid AS oid
      FROM unnest('{mailroom_actions,jobs,mailroom_queues,mailroom_home,tokens,mailroom_messages}'::text[]) name) t)");
  if (!sees_all.value<bool>()) return {};
  return connection
      .run(R"(
SELECT format('the action "%s"', e.action) FROM unnest('{activation,password_recovery,message}'::text[]) e (action)
WHERE NOT EXISTS (SELECT FROM mailroom_actions a WHERE a.action = e.action)
UNION ALL
SELECT 'the queue "mailroom"' WHERE NOT EXISTS (SELECT FROM jobs) AND NOT EXISTS (SELECT FROM mailroom_queues)
UNION ALL
SELECT 'the row of mailroom_home'
WHERE NOT EXISTS (SELECT FROM mailroom_home) AND NOT EXISTS (SELECT FROM tokens) AND NOT EXISTS (SELECT FROM mailroom_messages))")
      .values<std::string>();
}

OtherOwners other_owners(db::Connection& connection) {
  std::vector<std::string> names;
  for (const auto& [key, object] : expected_objects()) {
    if (key.kind == ObjectKind::function) names.push_back(key.name);
  }
  return connection.transact([&](pqxx::work& transaction) {
    const auto schema = db::Connection::execute(transaction, "SELECT current_schema()").text();
    // The server then writes the types of arguments with their schema.
    db::Connection::execute(transaction, "SET LOCAL search_path = pg_catalog");
    OtherOwners found;
    for (const auto& row :
         db::Connection::execute(transaction, R"(
WITH home AS (SELECT c.relowner AS owner, c.relnamespace AS schema FROM pg_class c
              WHERE c.relnamespace = quote_ident($1)::regnamespace AND c.relname = 'mailroom_messages'),
others AS (
  SELECT 'table ' || c.relname AS object, format('ALTER TABLE %s OWNER TO %I;', c.oid::regclass, pg_get_userbyid(h.owner)) AS statement
  FROM home h JOIN pg_class c ON c.relnamespace = h.schema AND c.relkind IN ('r', 'p') AND c.relowner <> h.owner
  WHERE c.relname = ANY ($2::text[]) AND c.relname LIKE 'mailroom\_%'
  UNION ALL
  SELECT 'function ' || p.proname, format('ALTER FUNCTION %s OWNER TO %I;', p.oid::regprocedure, pg_get_userbyid(h.owner))
  FROM home h JOIN pg_proc p ON p.pronamespace = h.schema AND p.proowner <> h.owner
  WHERE (p.proname = ANY ($3::text[]) OR p.proname = 'mailroom_function_set') AND NOT EXISTS (
    SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'))
SELECT (SELECT pg_get_userbyid(owner) FROM home) AS owner, object, statement FROM others ORDER BY object, statement)",
                                 schema, db::array_text(mailroom_tables()), db::array_text(names))) {
      found.owner = row.text("owner");
      found.objects.push_back(row.text("object"));
      found.statements.push_back(row.text("statement"));
    }
    return found;
  });
}

}  // namespace mailroom::schema
