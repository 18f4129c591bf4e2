// mailroom migrate as a process: killed, and together with golang-migrate's bookkeeping.

#include <csignal>
#include <cstdlib>
#include <fmt/format.h>

#include "schema/migrator.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/test_database.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::migrate_command_test {
namespace {

const int newest = schema::embedded_migrations().back().version;

FinishedRun migrate(const TestDatabase& database, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {mailroom_binary, "migrate", "--yes"});
  return run_to_end(arguments, {{"MAILROOM_DATABASE_URL", database.conninfo()}});
}

std::string dump(const TestDatabase& database) {
  const auto run = run_to_end(
      {std::string(std::getenv("MAILROOM_PG_BINDIR")) + "/pg_dump", "--schema-only", "--no-comments",
       "--exclude-table=mailroom_schema_history", "--exclude-table=schema_migrations", database.name()},
      {});
  REQUIRE(run.status == 0);
  // Newer versions of pg_dump print random keys here.
  std::string text;
  for (const auto& line : lines_of(run.output)) {
    if (line.find("restrict ") == std::string::npos) text += line + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("pg_dump shows the same schema whether a version is reached from below or from above") {
  TestDatabase database(TestDatabase::Schema::none);
  std::vector<std::string> from_below;
  for (int version = 0; version <= newest; ++version) {
    REQUIRE(migrate(database, {"goto", std::to_string(version)}).status == 0);
    from_below.push_back(dump(database));
  }
  for (int version = newest; version >= 0; --version) {
    CAPTURE(version);
    REQUIRE(migrate(database, {"goto", std::to_string(version)}).status == 0);
    CHECK(dump(database) == from_below[static_cast<std::size_t>(version)]);
  }
}

TEST_CASE(
    "killed during a migration, it leaves the previous version and no lock, and the next run succeeds") {
  TestDatabase database(TestDatabase::Schema::none);
  REQUIRE(migrate(database, {"goto", "0"}).status == 0);
  const auto holder = database.connect();
  holder->run("BEGIN");
  holder->run("LOCK TABLE accounts IN ACCESS SHARE MODE");
  const TemporaryDirectory directory;
  const auto connection = database.connect();
  {
    // Migration 2 waits for a lock on accounts.
    Subprocess process({mailroom_binary, "migrate", "--lock-timeout", "1h"},
                       {{"MAILROOM_DATABASE_URL", database.conninfo()}}, directory.path() / "out",
                       directory.path() / "err");
    REQUIRE(eventually(
        [&] { return locks(*connection, "NOT granted AND relation = 'accounts'::regclass") == 1; }));
    process.signal(SIGKILL);
    process.wait();
  }
  // The server notices within a second that its client has died, even while it waits for a lock.
  CHECK(eventually([&] { return locks(*connection, "locktype = 'advisory'") == 0; }));
  CHECK(value<std::string>(*connection, "SELECT m::text FROM schema_migrations m") == "(1,f)");
  holder->run("ROLLBACK");
  CHECK(migrate(database, {"up"}).status == 0);
  CHECK(migrate(database, {"status"}).status == 0);
}

TEST_CASE(
    "a database of golang-migrate is migrated by mailroom, up and down, and then by golang-migrate again") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  // The statements that golang-migrate 4 runs for `up 1`.
  connection->run(
      "CREATE TABLE IF NOT EXISTS \"public\".\"schema_migrations\" (version bigint not null primary key, "
      "dirty boolean not null)");
  connection->run("INSERT INTO \"public\".\"schema_migrations\" (version, dirty) VALUES (0, true)");
  connection->run(schema::embedded_migrations()[0].up);
  connection->run("TRUNCATE \"public\".\"schema_migrations\"");
  connection->run("INSERT INTO \"public\".\"schema_migrations\" (version, dirty) VALUES (0, false)");
  const auto before = dump(database);
  CHECK(migrate(database, {"status"}).status == 5);
  REQUIRE(migrate(database, {"up"}).status == 0);
  CHECK(migrate(database, {"status"}).status == 0);
  REQUIRE(migrate(database, {"goto", "0"}).status == 0);
  CHECK(dump(database) == before);
  // golang-migrate reads this row and resumes from it, running each exported file as one simple query.
  CHECK(value<std::string>(*connection,
                           "SELECT version || ' ' || dirty FROM \"public\".\"schema_migrations\" LIMIT 1") ==
        "0 false");
  const TemporaryDirectory directory;
  REQUIRE(migrate(database, {"export", directory.path().string()}).status == 0);
  for (int version = 1; version <= newest; ++version) {
    const auto stem =
        std::to_string(version) + "_" + schema::embedded_migrations()[static_cast<std::size_t>(version)].name;
    connection->run("TRUNCATE \"public\".\"schema_migrations\"");
    connection->run("INSERT INTO \"public\".\"schema_migrations\" (version, dirty) VALUES ($1, true)",
                    version);
    connection->run(read_file(directory.path() / (stem + ".up.sql")));
    connection->run("UPDATE \"public\".\"schema_migrations\" SET dirty = false");
  }
  CHECK(migrate(database, {"status"}).status == 0);
  CHECK(migrate(database, {"down", "--all"}).status == 0);
  CHECK(value<int>(*connection, "SELECT count(*) FROM schema_migrations") == 0);
}

TEST_CASE("with --wait it retries until the database answers") {
  TestDatabase database(TestDatabase::Schema::none);
  db::Connection("dbname=postgres", "test")
      .run("ALTER DATABASE " + database.name() + " ALLOW_CONNECTIONS false");
  CHECK(migrate(database, {"status"}).status == 4);
  const TemporaryDirectory directory;
  Subprocess process({mailroom_binary, "migrate", "--wait", "1m"},
                     {{"MAILROOM_DATABASE_URL", database.conninfo()}}, directory.path() / "out",
                     directory.path() / "err");
  REQUIRE(eventually([&] {
    return read_file(directory.path() / "err").find("waiting for the database") != std::string::npos;
  }));
  db::Connection("dbname=postgres", "test")
      .run("ALTER DATABASE " + database.name() + " ALLOW_CONNECTIONS true");
  CHECK(process.wait() == 0);
}

TEST_CASE("a schema whose name needs quotes is migrated up, verified and migrated down") {
  TestDatabase database(TestDatabase::Schema::none);
  database.connect()->run("CREATE SCHEMA \"Our \"\"Mail\"\" App\"");
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {mailroom_binary, "--yes"});
    return run_to_end(arguments, {{"MAILROOM_DATABASE_URL", database.conninfo()},
                                  {"PGOPTIONS", "-csearch_path=\"Our\\ \"\"Mail\"\"\\ App\",public"},
                                  {"MAILROOM_SECRET_KEY",
                                   "0011223344556677889900aabbccddeeff0102030405060708090a0b0c0d0e0f"}});
  };
  for (const auto& command : std::vector<std::vector<std::string>>{{"migrate"},
                                                                   {"migrate", "verify"},
                                                                   {"simulate", "--accounts", "3"},
                                                                   {"collect", "--once"},
                                                                   {"status"},
                                                                   {"doctor"},
                                                                   {"migrate", "down", "--all"}}) {
    const auto finished = run(command);
    CAPTURE(command.back(), finished.output, finished.errors);
    CHECK(finished.status == 0);
  }
}

TEST_CASE("pgcrypto may be in a schema outside the search_path") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto owner = database.connect();
  const auto role = database.name() + "_dbo";
  owner->run(fmt::format(
      "CREATE ROLE {0} LOGIN; CREATE SCHEMA extensions; CREATE EXTENSION pgcrypto SCHEMA extensions; "
      "CREATE SCHEMA mailroom AUTHORIZATION {0}; GRANT CREATE ON DATABASE {1} TO {0}",
      role, database.name()));
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), mailroom_binary);
    return run_to_end(words, {{"MAILROOM_DATABASE_URL", fmt::format("{} user={}", database.conninfo(), role)},
                              {"PGOPTIONS", "-csearch_path=mailroom,public"},
                              {"MAILROOM_SECRET_KEY", std::string(64, 'a')}});
  };
  const auto grant = fmt::format("GRANT USAGE ON SCHEMA extensions TO {};", role);
  const auto refused = run({"migrate"});
  CHECK(refused.status == 5);
  CHECK(refused.errors.find("hint: " + grant) != std::string::npos);
  owner->run(grant);
  for (const auto& words : std::vector<std::vector<std::string>>{{"migrate", "--dry-run"},
                                                                 {"migrate"},
                                                                 {"migrate", "verify"},
                                                                 {"simulate", "--accounts", "3"},
                                                                 {"collect", "--once"}}) {
    const auto finished = run(words);
    CAPTURE(words.back(), finished.errors);
    CHECK(finished.status == 0);
  }
  owner->run("DROP OWNED BY " + role + " CASCADE; DROP ROLE " + role);
}

TEST_CASE("where an event trigger enables row security on every new table, the owner works as elsewhere") {
  TestDatabase database(TestDatabase::Schema::none);
  database.connect()->run(R"(
CREATE FUNCTION secure() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table' AND schema_name = 'public' LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', r.object_identity);
  END LOOP;
END $$;
CREATE EVENT TRIGGER secure ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION secure())");
  const auto role = database.name() + "_dbo";
  database.connect()->run(
      fmt::format("CREATE ROLE {0} LOGIN; GRANT CREATE ON DATABASE {1} TO {0}; "
                  "GRANT CREATE ON SCHEMA public TO {0}",
                  role, database.name()));
  for (const auto& words : std::vector<std::vector<std::string>>{{"migrate"},
                                                                 {"migrate", "verify"},
                                                                 {"simulate", "--accounts", "3"},
                                                                 {"collect", "--once"},
                                                                 {"tail"}}) {
    auto command = words;
    command.insert(command.begin(), mailroom_binary);
    const auto finished =
        run_to_end(command, {{"MAILROOM_DATABASE_URL", fmt::format("{} user={}", database.conninfo(), role)},
                             {"MAILROOM_SECRET_KEY", std::string(64, 'a')}});
    CAPTURE(words.back(), finished.output, finished.errors);
    CHECK(finished.status == 0);
  }
  database.connect()->run("DROP OWNED BY " + role + " CASCADE; DROP ROLE " + role);
}

}  // namespace mailroom::test::migrate_command_test
