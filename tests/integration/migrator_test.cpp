// How migrations are run, with lists of migrations that the tests make up.

#include "schema/migrator.hpp"

#include <thread>

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::migrator_test {
namespace {

using Migrations = std::vector<schema::Migration>;

const schema::Migration first{0, "first", "CREATE TABLE a (x int);", "DROP TABLE a;"};

/// Records the reported progress.
struct Listener final : schema::MigrationObserver {
  std::string heard;

  void begins(const schema::MigrationStep& step) override { heard += "begins " + step.file() + "\n"; }
  void ended(const schema::MigrationStep& step, Milliseconds) override {
    heard += "ended " + step.file() + "\n";
  }
  void locked_out(const schema::MigrationStep& step, const std::string& holder, Milliseconds) override {
    heard += "locked out " + step.file() + (holder.empty() ? "" : " by " + holder.substr(0, 4)) + "\n";
  }
};

std::string up(db::Connection& connection, const Migrations& migrations,
               const schema::MigratorOptions& options = {}) {
  schema::Migrator migrator(connection, test_author(), options);
  Listener listener;
  const auto state = migrator.begin();
  migrator.run(state, schema::plan_up(migrations, state), listener);
  return listener.heard;
}

/// The error of migrating up.
Error failure(db::Connection& connection, const Migrations& migrations,
              const schema::MigratorOptions& options = {}) {
  try {
    up(connection, migrations, options);
  } catch (const Error& error) {
    return error;
  }
  FAIL("it went through");
  return Error(ExitCode::done, "");
}

bool has(db::Connection& connection, const std::string& relation) {
  return connection.run("SELECT to_regclass($1) IS NOT NULL", relation)[0][0].as<bool>();
}

std::string recorded(db::Connection& connection) {
  return value<std::string>(connection, "SELECT coalesce(max(m::text), 'none') FROM schema_migrations m");
}

}  // namespace

TEST_CASE("a failure shows the statement, its line in the file, and PostgreSQL's message") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const Migrations migrations{
      first,
      {1, "second", "-- head\n\nCREATE TABLE b (x int);\n\nALTER TABLE a\n    ADD y int,\n    ADD x int;\n",
       "-"}};
  const auto error = failure(*connection, migrations);
  CHECK(error.code() == ExitCode::schema);
  CHECK(std::string(error.what()) ==
        "migration 1_second.up.sql failed at line 5: column \"x\" of relation \"a\" already exists\n"
        "  ALTER TABLE a ADD y int, ADD x int");
  CHECK(error.hint() == "the migration was rolled back, and the version is unchanged");
  CHECK_FALSE(has(*connection, "b"));
  CHECK(recorded(*connection) == "(0,f)");
}

TEST_CASE("a failure names the line within the statement that PostgreSQL reports") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const auto error =
      failure(*connection,
              {{0, "first", "CREATE TABLE a (x int);\nCREATE VIEW v AS\n  SELECT x,\n    z FROM a;", "-"}});
  CHECK(std::string(error.what())
            .rfind("migration 0_first.up.sql failed at line 4: column \"z\" does not exist", 0) == 0);
}

TEST_CASE("PostgreSQL's own hint is passed on, and the text of a row is not") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  CHECK(
      failure(*connection, {{0, "first", "DO $$ BEGIN RAISE 'no' USING HINT = 'ask'; END $$", "-"}}).hint() ==
      "ask; the migration was rolled back, and the version is unchanged");
  const auto error =
      failure(*connection,
              {{0, "first", "CREATE TABLE a (s text UNIQUE); INSERT INTO a VALUES ('row'), ('row')", "-"}});
  CHECK(error.hint().find("row") == std::string::npos);
}

TEST_CASE("an error at commit is reported with the migration") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const auto error = failure(
      *connection,
      {{0, "first",
        "CREATE TABLE a (x int UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO a VALUES (1), (1)", "-"}});
  CHECK(std::string(error.what()) ==
        "migration 0_first.up.sql failed at its commit: duplicate key value violates unique constraint "
        "\"a_x_key\"");
  CHECK_FALSE(has(*connection, "schema_migrations"));
}

TEST_CASE("a dry run runs all statements and leaves nothing") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const Migrations migrations{
      first,
      {1, "index", "CREATE INDEX CONCURRENTLY IF NOT EXISTS a_x_idx ON a (x);", "DROP INDEX a_x_idx;"}};
  CHECK(up(*connection, migrations, {.dry_run = true}) ==
        "begins 0_first.up.sql\nended 0_first.up.sql\nbegins 1_index.up.sql\nended 1_index.up.sql\n");
  for (const auto* relation : {"a", "a_x_idx", "schema_migrations", "mailroom_schema_history"})
    CHECK_FALSE(has(*connection, relation));
  auto broken = migrations;
  broken[1].up = "SELECT 1;\nSELECT nothing FROM a";
  CHECK(std::string(failure(*connection, broken, {.dry_run = true}).what())
            .rfind("migration 1_index.up.sql failed at line 2: column \"nothing\" does not exist", 0) == 0);
}

TEST_CASE("CREATE INDEX CONCURRENTLY runs outside a transaction, and an invalid index is created again") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  up(*connection, {first});
  connection->run("INSERT INTO a VALUES (1), (1)");
  const Migrations migrations{first,
                              {1, "index", "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS a_x_idx ON a (x);",
                               "DROP INDEX a_x_idx;"}};
  const auto error = failure(*connection, migrations);
  CHECK(std::string(error.what())
            .rfind("migration 1_index.up.sql failed at line 1: could not create unique index", 0) == 0);
  CHECK(error.hint().find("tries it again") != std::string::npos);
  // PostgreSQL leaves an invalid index behind, which IF NOT EXISTS would accept.
  CHECK(
      value<bool>(*connection, "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = 'a_x_idx'::regclass"));
  CHECK(recorded(*connection) == "(0,f)");
  connection->run("DELETE FROM a");
  up(*connection, migrations);
  CHECK(value<bool>(*connection, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'a_x_idx'::regclass"));
  CHECK(recorded(*connection) == "(1,f)");
}

TEST_CASE("after a kill between an index and its record the next run succeeds") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const Migrations migrations{
      first,
      {1, "index", "CREATE INDEX CONCURRENTLY IF NOT EXISTS a_x_idx ON a (x);", "DROP INDEX a_x_idx;"}};
  up(*connection, {first});
  connection->run("CREATE INDEX a_x_idx ON a (x)");
  up(*connection, migrations);
  CHECK(recorded(*connection) == "(1,f)");
}

TEST_CASE("a migration that does not get its locks lets other sessions proceed, and retries") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  up(*connection, {first});
  const auto holder = database.connect("holder");
  holder->run("BEGIN");
  holder->run("LOCK TABLE a");
  const Migrations migrations{first, {1, "second", "ALTER TABLE a ADD y int", "ALTER TABLE a DROP y"}};

  SECTION("until it gets them") {
    struct Yielding final : schema::MigrationObserver {
      db::Connection& holder;
      std::vector<std::string> holders;
      explicit Yielding(db::Connection& connection_of_holder) : holder(connection_of_holder) {}
      void locked_out(const schema::MigrationStep&, const std::string& by, Milliseconds) override {
        holders.push_back(by);
        if (holders.size() == 2) holder.run("COMMIT");
      }
    } yielding(*holder);
    schema::Migrator migrator(
        *connection, test_author(),
        {.lock_timeout = Milliseconds(20), .pauses = std::vector(1000, Milliseconds(1))});
    const auto state = migrator.begin();
    migrator.run(state, schema::plan_up(migrations, state), yielding);
    REQUIRE(yielding.holders.size() >= 2);
    CHECK(yielding.holders[0].rfind("pid " + std::to_string(holder->backend_pid()) + " (holder ", 0) == 0);
    CHECK(recorded(*connection) == "(1,f)");
  }
  SECTION("and gives up in the end, naming the sessions that hold them") {
    const auto error =
        failure(*connection, migrations,
                {.lock_timeout = Milliseconds(10), .pauses = {Milliseconds(1), Milliseconds(1)}});
    CHECK(error.code() == ExitCode::locked);
    CHECK(std::string(error.what()) ==
          "migration 1_second.up.sql did not get its locks, in 3 attempts of up to 10ms");
    CHECK(error.hint().find("that of pid " + std::to_string(holder->backend_pid()) + " (holder ") !=
          std::string::npos);
    CHECK(recorded(*connection) == "(0,f)");
  }
}

TEST_CASE("a role without the privilege is told which role has it") {
  TestDatabase database;
  const auto owner = database.connect();
  const auto role = "migrate_" + database.name();
  owner->run("CREATE ROLE " + role);
  owner->run("GRANT ALL ON ALL TABLES IN SCHEMA public TO " + role);
  owner->run("GRANT CREATE ON SCHEMA public TO " + role);
  auto migrations = schema::embedded_migrations();
  migrations.push_back({migrations.back().version + 1, "more", "ALTER TABLE accounts ADD locale text", "-"});
  const auto other = database.connect();
  other->run("SET ROLE " + role);
  const auto error = failure(*other, migrations);
  CHECK(error.hint().rfind("connected as " + role + "; run migrations as the owner of the tables, postgres",
                           0) == 0);
  owner->run("DROP OWNED BY " + role);
  owner->run("DROP ROLE " + role);
}

TEST_CASE(
    "the lock is golang-migrate's, by either of its keys, and the error names the session that holds it") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const auto other = database.connect("stranger");
  for (const auto& name : {database.name(), "/" + database.name()}) {
    CAPTURE(name);
    const auto key = schema::golang_migrate_key(name, "public", "schema_migrations");
    other->run("SELECT pg_advisory_lock($1::bigint)", key);
    const auto error = failure(*connection, {first});
    CHECK(error.code() == ExitCode::locked);
    CHECK(error.hint().rfind("pid " + std::to_string(other->backend_pid()) + " holds its lock (stranger ",
                             0) == 0);
    other->run("SELECT pg_advisory_unlock_all()");
    // A failed attempt leaves neither of the two locks behind.
    CHECK(value<int>(
              *connection,
              "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()") == 0);
  }
  up(*connection, {first});
  CHECK_FALSE(
      other
          ->run("SELECT pg_try_advisory_lock($1::bigint)",
                schema::golang_migrate_key("/" + database.name(), "public", "schema_migrations"))[0][0]
          .as<bool>());
}

TEST_CASE("of two concurrent migrators one does the work, and the other waits and finds it done") {
  TestDatabase database(TestDatabase::Schema::none);
  // It ends when the other migrator has tried to take the lock.
  const Migrations migrations{first,
                              {1, "slow", R"(
DO $$ BEGIN
  WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
                    AND query LIKE '%pg_try_advisory_lock%') LOOP
    PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
  END LOOP;
END $$)",
                               "-"}};
  std::array<std::string, 2> heard;
  std::vector<std::thread> threads;
  for (auto& one : heard) {
    threads.emplace_back([&] {
      const auto connection = database.connect();
      one = up(*connection, migrations, {.wait = std::chrono::seconds(60)});
    });
  }
  for (auto& thread : threads)
    thread.join();
  CHECK(heard[0].empty() != heard[1].empty());
  const auto connection = database.connect();
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_schema_history") == 2);
}

}  // namespace mailroom::test::migrator_test
