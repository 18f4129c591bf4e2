#include "support/test_database.hpp"

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

#include "schema/migrator.hpp"
#include "schema/verification.hpp"

namespace mailroom::test {
namespace {

std::string unique_name() {
  static std::atomic<int> count{0};
  return "mailroom_test_" + std::to_string(getpid()) + "_" + std::to_string(++count);
}

}  // namespace

TestDatabase::TestDatabase(Schema schema, const std::string& options) : name_(unique_name()) {
  if (std::getenv("MAILROOM_TEST_PG") == nullptr) {
    throw std::runtime_error("these tests need a temporary server: run them through scripts/with-postgres");
  }
  Connection("dbname=postgres", "test").run("CREATE DATABASE " + name_ + " " + options);
  if (schema == Schema::current) migrate(*connect());
}

TestDatabase::~TestDatabase() {
  Connection("dbname=postgres", "test").run("DROP DATABASE IF EXISTS " + name_ + " WITH (FORCE)");
}

std::unique_ptr<Connection> TestDatabase::connect(const std::string& purpose) const {
  return std::make_unique<Connection>(conninfo(), purpose);
}

SchemaAuthor test_author() {
  return {.actor = "test@host", .reason = "", .program_version = "test"};
}

void migrate(Connection& connection) {
  Migrator migrator(connection, test_author());
  const auto state = recognised(connection, migrator.begin());
  MigrationObserver nobody;
  migrator.run(state, plan_up(embedded_migrations(), state), nobody);
  // The session continues without the migration lock.
  connection.run("SELECT pg_advisory_unlock_all()");
}

bool knows_setting(Connection& connection, const std::string& name) {
  return !connection.run("SELECT FROM pg_settings WHERE name = $1", name).empty();
}

void insert_accounts(Connection& connection, int count, const std::string& prefix) {
  connection.run(
      "INSERT INTO accounts (email, login) SELECT $2 || g || '@test.example', $2 || g FROM "
      "generate_series(1, $1) g",
      count, prefix);
}

}  // namespace mailroom::test
