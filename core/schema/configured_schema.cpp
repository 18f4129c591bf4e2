// Looks at the facts of the session, which were read when it began.

#include "schema/configured_schema.hpp"

#include <fmt/format.h>

#include "base/printable.hpp"
#include "schema/schema_places.hpp"

namespace mailroom::schema {
namespace {

/// Whoever may create functions in the schema can have mailroom's own call them.
void take_default_grants(db::Connection& connection) {
  const auto statements = connection.run(R"(
SELECT DISTINCT format('REVOKE ALL ON SCHEMA %I FROM %s', n.nspname, coalesce(quote_ident(r.rolname), 'PUBLIC'))
FROM pg_namespace n, aclexplode(n.nspacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE n.nspname = $1 AND a.grantee <> n.nspowner)",
                                         connection.schema());
  for (const auto& statement : statements.values<std::string>())
    connection.run(statement);
}

}  // namespace

std::string advice_of_own_schema() {
  return "give mailroom its own schema, which mailroom migrate creates: database.schema: mailroom in the "
         "configuration, or MAILROOM_DATABASE_SCHEMA=mailroom";
}

void require_configured_schema(db::Connection& connection) {
  const auto& facts = connection.facts();
  if (facts.may_use_schema) return;
  if (facts.schema_exists) {
    throw Error(
        ExitCode::schema,
        fmt::format("the role may not use the schema \"{}\" of database.schema", connection.schema()),
        connection
            .run("SELECT format('as its owner: GRANT USAGE ON SCHEMA %I TO %I;', $1::text, current_user)",
                 connection.schema())
            .text());
  }
  refuse_wrong_schema(connection);
  const auto database = connection.run("SELECT current_database()").text();
  throw Error(
      ExitCode::schema,
      fmt::format("there is no schema \"{}\" in the database {}", connection.schema(), shown_text(database)),
      "if this is the database, mailroom migrate creates it; mailroom config show shows where database.url and "
      "database.schema come from");
}

void create_configured_schema(db::Connection& connection) {
  if (connection.facts().schema_exists) return;
  const auto names = connection.run(
      "SELECT format('%I', $1::text) AS schema, format('%I', current_user) AS role", connection.schema())[0];
  const auto name = names.text("schema");
  try {
    connection.run("CREATE SCHEMA IF NOT EXISTS " + name);
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != db::sqlstate::insufficient_privilege) throw;
    throw Error(ExitCode::schema, fmt::format("there is no schema {}, and the role may not create it", name),
                fmt::format("as the owner of the database: CREATE SCHEMA {} AUTHORIZATION {};", name,
                            names.text("role")));
  }
  take_default_grants(connection);
  connection.set_up();
}

}  // namespace mailroom::schema
