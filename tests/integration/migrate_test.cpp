// The migrations up and down, the lock, and the bookkeeping shared with golang-migrate.

#include "schema/bookkeeping.hpp"
#include "schema/migrator.hpp"
#include "schema/statements.hpp"
#include "support/catch.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::migrate_test {
namespace {

const int newest = schema::embedded_migrations().back().version;

void run(db::Connection& connection,
         const std::function<schema::MigrationSteps(const schema::SchemaState&)>& plan) {
  schema::Migrator migrator(connection, test_author());
  const auto state = migrator.begin();
  schema::MigrationObserver nobody;
  migrator.run(state, schema::with_functions(plan(state), state, schema::embedded_functions().migration),
               nobody);
}

void up(db::Connection& connection, int to) {
  run(connection, [&](const schema::SchemaState& state) {
    return schema::plan_up(schema::embedded_migrations(), state, to);
  });
}

void down(db::Connection& connection, int steps) {
  run(connection, [&](const schema::SchemaState& state) {
    return schema::plan_down(schema::embedded_migrations(), state, steps);
  });
}

/// The catalogue's tables, columns, indexes, triggers, functions and types as one text.
std::string catalogue(db::Connection& connection) {
  return value<std::string>(
      connection,
      "SELECT coalesce(string_agg(line, E'\\n' ORDER BY line), '') FROM ("
      "SELECT format('column %s.%s %s %s %s', attrelid::regclass, attname, format_type(atttypid, atttypmod), "
      "attnotnull, pg_get_expr(adbin, adrelid)) AS line FROM pg_attribute JOIN pg_class c ON c.oid = "
      "attrelid "
      "LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum "
      "WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped AND relname !~ "
      "'^(schema_migrations|mailroom_schema_history)' "
      "UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class c ON c.oid = indexrelid "
      "WHERE relnamespace = 'public'::regnamespace AND relname !~ "
      "'^(schema_migrations|mailroom_schema_history)' "
      "UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal "
      "UNION ALL SELECT pg_get_constraintdef(oid) || conrelid::regclass FROM pg_constraint "
      "WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 "
      "AND conrelid IS DISTINCT FROM to_regclass('schema_migrations') "
      "AND conrelid IS DISTINCT FROM to_regclass('mailroom_schema_history') "
      "UNION ALL SELECT pg_get_functiondef(p.oid) FROM pg_proc p WHERE pronamespace = 'public'::regnamespace "
      "AND (proname LIKE 'trg\\_%' OR proname LIKE 'mailroom\\_%') AND proname <> 'mailroom_home_number' "
      "UNION ALL SELECT 'type ' || typname FROM pg_type WHERE typnamespace = 'public'::regnamespace AND "
      "typtype = 'e') l");
}

}  // namespace

TEST_CASE("every down migration restores exactly the schema before its up migration") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  std::vector<std::string> before;
  for (int version = 0; version <= newest; ++version) {
    before.push_back(catalogue(*connection));
    up(*connection, version);
    CHECK(schema::read_schema_state(*connection).version == version);
  }
  const auto full = catalogue(*connection);
  for (int version = newest; version >= 0; --version) {
    CAPTURE(version);
    down(*connection, 1);
    CHECK(catalogue(*connection) == before[static_cast<std::size_t>(version)]);
  }
  CHECK_FALSE(schema::read_schema_state(*connection).version);
  up(*connection, newest);
  CHECK(catalogue(*connection) == full);
}

TEST_CASE("each migration is on record: its version, duration, actor and checksum") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  up(*connection, 1);
  down(*connection, 1);
  const auto rows = connection->run(
      "SELECT version, name, direction, actor, reason IS NULL, length(checksum), duration_ms >= 0, "
      "mailroom_version FROM mailroom_schema_history ORDER BY id");
  REQUIRE(rows.size() == 3);
  CHECK(std::string(rows[0][2].c_str()) == "up");
  CHECK(rows[1][0].as<int>() == 1);
  CHECK(std::string(rows[1][1].c_str()) == "tokens");
  CHECK(std::string(rows[2][2].c_str()) == "down");
  CHECK(std::string(rows[2][3].c_str()) == "test@host");
  CHECK(rows[2][4].as<bool>());
  CHECK(rows[2][5].as<int>() == 64);
  CHECK(rows[2][6].as<bool>());
  CHECK(std::string(rows[2][7].c_str()) == "test");
}

TEST_CASE("migrating down and up again loses no account and no token, and keeps the cursor") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5);
  connection->run(
      "INSERT INTO mailroom_batches (queue, ids, collector, emitted_at, cursor, open_from, gap_ids) "
      "VALUES ('mailroom', '{[1,4)}', 0, now(), 3, 1, '{}'), ('mailroom', '{[4,5)}', 0, NULL, 4, 1, '{}')");
  down(*connection, newest);
  // The fourth token is leased and not acknowledged: it must be emitted again.
  CHECK(value<int>(*connection, "SELECT last_seq FROM jobs") == 3);
  up(*connection, newest);
  CHECK(value<int>(*connection, "SELECT count(*) FROM tokens") == 5);
  CHECK(value<int>(*connection, "SELECT cursor FROM mailroom_queue_state('mailroom')") == 3);
}

TEST_CASE("a version locks at most one table that others use, and the functions lock none") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  connection->run(schema::embedded_migrations().front().up);
  const auto tables_locked_by = [&](const std::string& sql) {
    const auto before = value<std::string>(
        *connection,
        "SELECT array_agg(oid)::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace");
    std::size_t count = 0;
    connection->transact([&](pqxx::work& transaction) {
      db::Connection::execute(transaction, sql);
      const auto locked = db::Connection::execute(
          transaction,
          "SELECT DISTINCT relation FROM pg_locks WHERE pid = pg_backend_pid() AND granted "
          "AND relation = ANY ($1::oid[]) AND mode NOT IN "
          "('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')",
          before);
      count = static_cast<std::size_t>(locked.size());
    });
    return count;
  };
  for (std::size_t version = 1; version < schema::embedded_migrations().size(); ++version) {
    const auto& migration = schema::embedded_migrations()[version];
    INFO(migration.title());
    if (schema::is_concurrent(schema::split_statements(migration.up))) {
      connection->run(migration.up);
    } else {
      CHECK(tables_locked_by(migration.up) <= 1);
    }
  }
  CHECK(tables_locked_by(schema::embedded_functions().migration.up) == 0);
  CHECK(tables_locked_by(schema::embedded_functions().migration.up) == 0);
}

TEST_CASE("a second concurrent migrator is refused") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto first = database.connect();
  const auto second = database.connect();
  up(*first, 0);
  try {
    up(*second, newest);
    FAIL("both migrated");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::locked);
  }
  CHECK(schema::read_schema_state(*second).version == 0);
}

TEST_CASE("a failed migration is rolled back to the version before it") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  up(*connection, 6);
  connection->run("CREATE TABLE mailroom_gaps (mine int)");
  try {
    up(*connection, newest);
    FAIL("the migration went through");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::schema);
    CHECK(std::string(error.what())
              .find("relation \"mailroom_gaps\" already exists\n  CREATE TABLE "
                    "mailroom_gaps (") != std::string::npos);
  }
  CHECK(schema::read_schema_state(*connection).version == 6);
  CHECK_FALSE(schema::read_schema_state(*connection).dirty);
  CHECK(value<bool>(*connection, "SELECT to_regclass('mailroom_batches') IS NULL"));
}

TEST_CASE("golang-migrate's bookkeeping is accepted, and its dirty state refused") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  // The state after golang-migrate 4 has run 0_init.
  connection->run(schema::embedded_migrations()[0].up);
  connection->run(
      "CREATE TABLE \"schema_migrations\" (version bigint not null primary key, dirty boolean not null)");
  connection->run("INSERT INTO schema_migrations VALUES (0, true)");
  CHECK_THROWS_AS(up(*connection, newest), Error);
  CHECK(value<std::string>(*connection, "SELECT m::text FROM schema_migrations m") == "(0,t)");
  connection->run("UPDATE schema_migrations SET dirty = false");
  connection->run("SELECT pg_advisory_unlock_all()");
  up(*connection, newest);
  CHECK(value<std::string>(*connection, "SELECT m::text FROM schema_migrations m") ==
        "(" + std::to_string(newest) + ",f)");
}

TEST_CASE("a schema_migrations table of another tool is recognised and left alone") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  connection->run("CREATE TABLE schema_migrations (version varchar(128) PRIMARY KEY)");
  try {
    up(*connection, newest);
    FAIL("it was taken for ours");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::schema);
    CHECK(std::string(error.what()) ==
          "the table schema_migrations (version character varying(128)) belongs to another tool, probably "
          "dbmate");
  }
}

}  // namespace mailroom::test::migrate_test
