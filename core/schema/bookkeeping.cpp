#include "schema/bookkeeping.hpp"

#include <fmt/format.h>

#include "schema/minimum_client.hpp"
#include "schema/recognition.hpp"

namespace mailroom {
namespace {

/// Checks only the schema in which mailroom would create the table; other schemas of the search_path may
/// belong to other applications.
bool exists(Connection& connection, const char* table) {
  const auto row = connection.run(
      "SELECT current_schema() IS NULL, to_regclass(format('%I.%I', current_schema(), $1::text)) IS NOT NULL",
      std::string(table))[0];
  if (row[0].as<bool>()) {
    throw Error(ExitCode::schema, "no schema of the search_path exists", "create it, or fix the search_path");
  }
  return row[1].as<bool>();
}

/// Throws Error(schema) unless the table schema_migrations, which exists, has the columns of golang-migrate
/// and mailroom.
void require_own_record(Connection& connection) {
  const auto row = connection.run(
      "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum), "
      "count(*) FILTER (WHERE (attname, atttypid) IN (('version', 'bigint'::regtype), "
      "('dirty', 'boolean'::regtype))) "
      "FROM pg_attribute WHERE attrelid = to_regclass(format('%I.schema_migrations', current_schema())) "
      "AND attnum > 0 AND NOT attisdropped")[0];
  if (row[1].as<int>() == 2) return;
  const auto columns = row[0].as<std::string>("");
  throw Error(ExitCode::schema,
              fmt::format("the table schema_migrations ({}) belongs to another tool{}", columns,
                          columns == "version character varying(128)" ? ", probably dbmate" : ""),
              "mailroom needs (version bigint, dirty boolean) there, as golang-migrate does, and does not "
              "change this table; " +
                  advice_of_own_schema() +
                  "; or, if that tool made mailroom's tables and is no longer used, rename its table and run "
                  "mailroom migrate baseline V");
}

}  // namespace

SchemaState read_schema_state(Connection& connection) {
  const bool recorded = exists(connection, "schema_migrations");
  if (recorded) {
    require_own_record(connection);
    const auto rows = connection.run("SELECT version, dirty FROM schema_migrations LIMIT 1");
    if (!rows.empty()) return {.version = rows[0][0].as<long>(), .dirty = rows[0][1].as<bool>()};
  }
  const bool made_by_hand =
      exists(connection, "accounts") || exists(connection, "tokens") || exists(connection, "jobs");
  if (made_by_hand) return {.version = 0, .unrecorded = true};
  return {};
}

void record_version(pqxx::transaction_base& transaction, std::optional<long> version) {
  Connection::execute(transaction,
                      "CREATE TABLE IF NOT EXISTS schema_migrations "
                      "(version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL)");
  Connection::execute(transaction, "DELETE FROM schema_migrations");
  if (version) {
    Connection::execute(transaction, "INSERT INTO schema_migrations (version, dirty) VALUES ($1, false)",
                        *version);
  }
}

void record_history(pqxx::transaction_base& transaction, const Migration& migration,
                    const std::string& direction, Milliseconds took, const SchemaAuthor& author) {
  Connection::execute(
      transaction,
      "CREATE TABLE IF NOT EXISTS mailroom_schema_history ("
      "id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
      "at timestamptz NOT NULL DEFAULT clock_timestamp(), "
      "version bigint NOT NULL, name text NOT NULL, direction text NOT NULL, "
      "checksum text NOT NULL, duration_ms bigint NOT NULL, actor text NOT NULL, "
      "db_user name NOT NULL DEFAULT session_user, reason text, mailroom_version text NOT NULL)");
  Connection::execute(
      transaction,
      "INSERT INTO mailroom_schema_history "
      "(version, name, direction, checksum, duration_ms, actor, reason, mailroom_version) "
      "VALUES ($1, $2, $3, encode(sha256(convert_to(replace($4, E'\\r', ''), 'UTF8')), 'hex'), "
      "$5, $6, nullif($7, ''), $8)",
      migration.version, migration.name, direction, migration.up, took.count(), author.actor, author.reason,
      author.program_version);
}

void record_claim(pqxx::transaction_base& transaction, long version, const std::string& direction,
                  const SchemaAuthor& author) {
  record_version(transaction, version);
  for (const auto& migration : embedded_migrations()) {
    if (migration.version <= version)
      record_history(transaction, migration, direction, Milliseconds{0}, author);
  }
}

void require_current_schema(Connection& connection) {
  const auto state = read_schema_state(connection);
  if (state.dirty) require_plannable(embedded_migrations(), state);
  if (!state.version) {
    throw Error(ExitCode::schema, "the database has no mailroom schema yet", "run: mailroom migrate");
  }
  if (state.unrecorded) {
    throw Error(ExitCode::schema, "the tables have no record of their version", "run: mailroom migrate");
  }
  const auto newest = embedded_migrations().back().version;
  require_fitting(*state.version, newest, *state.version > newest ? read_minimum_client(connection) : 0);
}

}  // namespace mailroom
