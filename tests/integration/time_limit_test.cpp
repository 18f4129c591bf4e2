// How time limits of a role or database affect a session and a migration.

#include <string>
#include <vector>

#include "schema/migrator.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::time_limit_test {
namespace {

/// The settings of `names` that this server knows: transaction_timeout is new in PostgreSQL 17.
std::vector<std::string> known_settings(db::Connection& connection, std::vector<std::string> names) {
  std::erase_if(names, [&](const std::string& name) { return !knows_setting(connection, name); });
  return names;
}

void up(db::Connection& connection, const std::vector<schema::Migration>& migrations) {
  schema::Migrator migrator(connection, test_author(), {});
  schema::MigrationObserver nobody;
  const auto state = migrator.begin();
  migrator.run(state, schema::plan_up(migrations, state), nobody);
}

}  // namespace

TEST_CASE("a session that a time limit has terminated counts as lost, not as an error of a statement") {
  TestDatabase database;
  for (const auto& limit :
       known_settings(*database.connect(), {"idle_in_transaction_session_timeout", "transaction_timeout"})) {
    CAPTURE(limit);
    const auto connection = database.connect();
    const auto watch = database.connect();
    connection->run("SET " + limit + " = '50ms'");
    CHECK_THROWS_AS(connection->transact([&](pqxx::work& work) {
      db::Connection::execute(work, "SELECT 1");
      CHECK(eventually([&] {
        return value<int>(*watch, "SELECT count(*) FROM pg_stat_activity WHERE pid = " +
                                      std::to_string(connection->backend_pid())) == 0;
      }));
      db::Connection::execute(work, "SELECT 1");
    }),
                    db::ConnectionLost);
  }
}

TEST_CASE("a statement that transaction_timeout cancels loses the session") {
  TestDatabase database;
  for (const auto& limit : known_settings(*database.connect(), {"transaction_timeout"})) {
    const auto connection = database.connect();
    connection->run("SET " + limit + " = '50ms'");
    CHECK_THROWS_AS(connection->run("SELECT pg_sleep(600)"), db::ConnectionLost);
  }
}

TEST_CASE("time limits do not cut a migration short") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  // The statements before the migration have this limit too.
  connection->run("SET statement_timeout = '2s'");
  up(*connection, {{0, "slow", "SELECT pg_sleep(2.1)", "SELECT 1"}});
  CHECK(value<std::string>(*connection, "SHOW statement_timeout") == "2s");
}

TEST_CASE("time limits do not cut CREATE INDEX CONCURRENTLY short") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto limits = known_settings(*database.connect(), {"statement_timeout", "transaction_timeout"});
  for (const auto& limit : limits)
    database.connect()->run("ALTER DATABASE " + database.name() + " SET " + limit + " = '2s'");
  const auto connection = database.connect();
  up(*connection,
     {{0, "slow",
       "CREATE FUNCTION slow(x int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS "
       "'BEGIN PERFORM pg_sleep(2.1); RETURN x; END'; CREATE TABLE a (x int); INSERT INTO a VALUES (1);",
       "-"},
      {1, "index", "CREATE INDEX CONCURRENTLY IF NOT EXISTS a_x_idx ON a (slow(x));", "-"}});
  CHECK(value<bool>(*connection, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'a_x_idx'::regclass"));
}

}  // namespace mailroom::test::time_limit_test
