// Reads and writes schema_migrations, as golang-migrate keeps it, and mailroom_schema_history.

#include "schema/bookkeeping.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/encoded_text.hpp"
#include "base/printable.hpp"
#include "crypto/digest.hpp"
#include "db/values.hpp"
#include "schema/configured_schema.hpp"
#include "schema/schema_objects.hpp"
#include "schema/schema_places.hpp"

namespace mailroom::schema {
namespace {

/// Computed here and not on the server, whose encoding may not have every character of the file.
std::string checksum_of(const Migration& migration) {
  if (migration.is_function_set()) return migration.checksum;
  auto text = migration.up;
  std::erase(text, '\r');
  return hex_text(crypto::sha256({text}));
}

/// Creates the table if it does not exist. Default privileges give nobody a right on it.
void create_record(pqxx::transaction_base& transaction, const std::string& table,
                   const std::string& columns) {
  if (has_table(transaction, table)) return;
  db::Connection::execute(transaction, fmt::format("CREATE TABLE {} ({})", table, columns));
  const auto statements = db::Connection::execute(transaction, R"(
SELECT DISTINCT format('REVOKE ALL ON %s%s FROM %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE ' ELSE '' END, c.oid::regclass,
                       coalesce(quote_ident(r.rolname), 'PUBLIC'))
FROM pg_class c, aclexplode(c.relacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname IN ($1::text, $1::text || '_id_seq') AND a.grantee <> c.relowner)",
                                                  table);
  for (const auto& statement : statements.values<std::string>())
    db::Connection::execute(transaction, statement);
}

/// Sets the sequence ahead of the history, which a switch-over to a logical replica leaves behind. Only one
/// migrator works on a schema.
void advance_history(pqxx::transaction_base& transaction) {
  db::Connection::execute(
      transaction,
      "SELECT setval('mailroom_schema_history_id_seq', h.newest) "
      "FROM mailroom_schema_history_id_seq s, (SELECT max(id) AS newest FROM mailroom_schema_history) h "
      "WHERE h.newest > CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END");
}

/// Which tables the current schema has.
struct Present {
  bool record = false;  ///< schema_migrations, with the columns of golang-migrate and mailroom
  bool tokens = false;
  bool traces = false;              ///< tokens as the first version after the original's makes it
  bool job_types = false;           ///< the table of batches as no release makes it
  bool functions = false;           ///< the record of the set of functions
  bool may_read_functions = false;  ///< that record
  bool is_renamed = false;          ///< the functions look for the tables in another schema
};

/// Throws Error(schema) if there is no schema, or if schema_migrations has other columns.
Present look_for_tables(db::Connection& connection) {
  const auto row = connection.run(
      "SELECT current_schema() IS NULL AS lacks_schema, t.oid IS NOT NULL AS record, "
      "string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) AS columns, "
      "count(*) FILTER (WHERE (attname, atttypid) IN (('version', 'bigint'::regtype), "
      "('dirty', 'boolean'::regtype))) AS of_record, "
      "to_regclass(quote_ident(current_schema()) || '.tokens') IS NOT NULL AS tokens, "
      "f.oid IS NOT NULL AS functions, "
      "coalesce(has_function_privilege(f.oid, 'EXECUTE'), false) AS may_read_functions, "
      "EXISTS (SELECT FROM pg_proc p, unnest(p.proconfig) c WHERE c LIKE 'search\\_path=%' AND "
      "p.oid = to_regprocedure(quote_ident(current_schema()) || '.trg_after_message_insert()') AND "
      "c <> 'search_path=' || quote_ident(current_schema()) || ', pg_temp') AS is_renamed, "
      "EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = to_regclass(quote_ident(current_schema()) || "
      "'.tokens') AND a.attname = 'traceparent' AND NOT a.attisdropped) AS traces, "
      "EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = to_regclass(quote_ident(current_schema()) || "
      "'.mailroom_batches') AND a.attname = 'job_type' AND NOT a.attisdropped) AS job_types "
      "FROM (SELECT to_regclass(quote_ident(current_schema()) || '.schema_migrations') AS oid) t CROSS JOIN "
      "(SELECT to_regprocedure(quote_ident(current_schema()) || '.mailroom_function_set()') AS oid) f "
      "LEFT JOIN pg_attribute ON attrelid = t.oid AND attnum > 0 AND NOT attisdropped GROUP BY t.oid, f.oid")
                       [0];
  if (row.flag("lacks_schema")) {
    refuse_wrong_schema(connection);
    throw Error(ExitCode::schema, "no schema of the search_path exists", "create it, or fix the search_path");
  }
  Present present{.record = row.flag("record"),
                  .tokens = row.flag("tokens"),
                  .traces = row.flag("traces"),
                  .job_types = row.flag("job_types"),
                  .functions = row.flag("functions"),
                  .may_read_functions = row.flag("may_read_functions"),
                  .is_renamed = row.flag("is_renamed")};
  if (!present.record || row.number<int>("of_record") == 2) return present;
  refuse_wrong_schema(connection);
  const auto columns = row.text("columns");
  throw Error(ExitCode::schema,
              fmt::format("the table schema_migrations ({}) belongs to another tool{}", columns,
                          columns == "version character varying(128)" ? ", probably dbmate" : ""),
              "mailroom needs (version bigint, dirty boolean) there, as golang-migrate does, and does not "
              "change this table; " +
                  advice_of_own_schema() +
                  "; or, if that tool made mailroom's tables and is no longer used, rename its table and run "
                  "mailroom migrate baseline V");
}

FunctionState function_state(db::Connection& connection, const Present& present) {
  if (!present.functions) return FunctionState::absent;
  // A role without the right to any function calls none that could be of another set.
  if (!present.may_read_functions)
    return present.is_renamed ? FunctionState::elsewhere : FunctionState::current;
  const auto row = connection.run(
      "SELECT checksum = $1 AS is_own, $1 = ANY (earlier) AS is_earlier FROM mailroom_function_set()",
      function_set_checksum())[0];
  if (row.flag("is_own")) return present.is_renamed ? FunctionState::elsewhere : FunctionState::current;
  return row.flag("is_earlier") ? FunctionState::newer : FunctionState::older;
}

/// Throws Error(schema) if the tables are those of a mailroom before the first release: a version of the same
/// number has others.
void refuse_unreleased(const Present& present, const SchemaState& state) {
  const bool lacks_traces = !state.dirty && *state.version > 0 && present.tokens && !present.traces;
  if (!present.job_types && !lacks_traces) return;
  throw Error(ExitCode::schema, "the schema is that of an unreleased mailroom, which no release upgrades",
              "nothing has been changed; to keep accounts and tokens, and delete queues and messages, run "
              "mailroom migrate goto 0 with the mailroom that made it, and then mailroom migrate");
}

/// Throws Error(failed) if the record seems empty because row security hides it.
void refuse_hidden_record(db::Connection& connection) {
  const auto is_hidden = connection.run(
      "SELECT row_security_active(to_regclass(quote_ident(current_schema()) || '.schema_migrations'))");
  if (is_hidden.value<bool>()) require_all_rows(connection, {"schema_migrations"});
}

}  // namespace

bool has_table(pqxx::transaction_base& transaction, const std::string& table) {
  return db::Connection::execute(
             transaction,
             "SELECT to_regclass(quote_ident(current_schema()) || '.' || quote_ident($1)) IS NOT NULL", table)
      .value<bool>();
}

bool has_tables_of_our_names(db::Connection& connection) {
  return connection
      .run(
          "SELECT bool_or(to_regclass(quote_ident(current_schema()) || '.' || name) IS NOT NULL) "
          "FROM unnest('{accounts,tokens,jobs}'::text[]) name")
      .value<bool>();
}

SchemaState read_schema_state(db::Connection& connection) {
  require_configured_schema(connection);
  const auto present = look_for_tables(connection);
  const auto functions = function_state(connection, present);
  if (present.record) {
    const auto rows = connection.run("SELECT version, dirty FROM schema_migrations LIMIT 1");
    if (!rows.empty()) {
      const SchemaState state{.version = rows[0].number<long>("version"),
                              .dirty = rows[0].flag("dirty"),
                              .lacks_tokens = !present.tokens,
                              .functions = functions};
      refuse_unreleased(present, state);
      return state;
    }
    refuse_hidden_record(connection);
  }
  if (!has_tables_of_our_names(connection)) return {};
  const SchemaState state{.version = 0, .unrecorded = true, .functions = functions};
  refuse_unreleased(present, state);
  return state;
}

void record_version(pqxx::transaction_base& transaction, std::optional<long> version) {
  create_record(transaction, "schema_migrations",
                "version bigint NOT NULL PRIMARY KEY, dirty boolean NOT NULL");
  db::Connection::execute(transaction, "DELETE FROM schema_migrations");
  if (version) {
    db::Connection::execute(transaction, "INSERT INTO schema_migrations (version, dirty) VALUES ($1, false)",
                            *version);
  }
}

void record_history(pqxx::transaction_base& transaction, const Migration& migration,
                    const std::string& direction, Milliseconds took, const SchemaAuthor& author) {
  create_record(transaction, "mailroom_schema_history",
                "id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
                "at timestamptz NOT NULL DEFAULT clock_timestamp(), "
                "version bigint NOT NULL, name text NOT NULL, direction text NOT NULL, "
                "checksum text NOT NULL, duration_ms bigint NOT NULL, actor text NOT NULL, "
                "db_user name NOT NULL DEFAULT session_user, reason text, mailroom_version text NOT NULL");
  advance_history(transaction);
  db::Connection::execute(
      transaction,
      "INSERT INTO mailroom_schema_history "
      "(version, name, direction, checksum, duration_ms, actor, reason, mailroom_version) "
      "VALUES ($1, $2, $3, $4, $5, $6, nullif($7, ''), $8)",
      migration.version, migration.name, direction, checksum_of(migration), took.count(), author.actor,
      author.reason, author.program_version);
}

void record_claim(pqxx::transaction_base& transaction, long version, const std::string& direction,
                  const SchemaAuthor& author) {
  record_version(transaction, version);
  for (const auto& migration : embedded_migrations()) {
    if (migration.version <= version)
      record_history(transaction, migration, direction, Milliseconds{0}, author);
  }
}

long read_minimum_client(db::Connection& connection) {
  const auto declared = connection.run(
      "SELECT format('SELECT %I.mailroom_minimum_client()', current_schema()) "
      "WHERE to_regprocedure(format('%I.mailroom_minimum_client()', current_schema())) IS NOT NULL");
  if (declared.empty()) return 0;
  return connection.run(declared.text()).value<long>();
}

void require_fitting(long version, long newest, long minimum_client) {
  if (version < newest) {
    throw Error(ExitCode::schema,
                fmt::format("the schema has version {}, but version {} is needed", version, newest),
                "run: mailroom migrate");
  }
  if (version > newest && minimum_client > newest) {
    throw Error(
        ExitCode::schema,
        fmt::format("the schema has version {}, which needs a mailroom that knows version {} or newer; "
                    "this one knows versions up to {}",
                    version, minimum_client, newest),
        "upgrade mailroom on this machine: the schema was migrated by a newer version");
  }
}

void require_functions(FunctionState functions) {
  switch (functions) {
    case FunctionState::absent:
      throw Error(ExitCode::schema, "the schema has none of mailroom's functions", "run: mailroom migrate");
    case FunctionState::older:
      throw Error(ExitCode::schema, "the functions of the schema are those of an older mailroom",
                  "run: mailroom migrate");
    case FunctionState::elsewhere:
      throw Error(ExitCode::schema, std::string(renamed_text), "run: mailroom migrate");
    case FunctionState::current:
    case FunctionState::newer:
      return;
  }
}

void require_tables(db::Connection& connection, const SchemaState& state) {
  if (!state.version || state.unrecorded || state.lacks_tokens) refuse_wrong_schema(connection);
  if (state.version) return;
  throw Error(ExitCode::schema, "the database has no mailroom schema yet", "run: mailroom migrate");
}

void require_current_schema(db::Connection& connection) {
  const auto state = read_schema_state(connection);
  require_tables(connection, state);
  if (state.dirty) require_plannable(embedded_migrations(), state);
  if (state.unrecorded) {
    throw Error(ExitCode::schema, "the tables have no record of their version", "run: mailroom migrate");
  }
  const auto newest = embedded_migrations().back().version;
  require_fitting(*state.version, newest, *state.version > newest ? read_minimum_client(connection) : 0);
  if (*state.version == newest) require_functions(state.functions);
}

std::vector<SchemaChange> read_schema_history(pqxx::transaction_base& transaction) {
  std::vector<SchemaChange> changes;
  if (!has_table(transaction, "mailroom_schema_history")) return changes;
  const auto rows = db::Connection::execute(
      transaction, "SELECT " + db::microseconds_sql("at") +
                       " AS at_us, version, name, direction, duration_ms, actor, db_user, "
                       "coalesce(reason, '') AS reason "
                       "FROM mailroom_schema_history ORDER BY at, id");
  for (const auto& row : rows) {
    changes.push_back({.at = row.moment<std::chrono::microseconds>("at_us"),
                       .version = row.number("version"),
                       .name = row.text("name"),
                       .direction = row.text("direction"),
                       .duration = Milliseconds(row.number("duration_ms")),
                       .actor = row.text("actor"),
                       .db_user = row.text("db_user"),
                       .reason = row.text("reason")});
  }
  return changes;
}

}  // namespace mailroom::schema
