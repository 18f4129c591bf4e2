#include "support/test_database.hpp"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <stdexcept>
#include <unistd.h>

#include "schema/migrator.hpp"
#include "schema/verification.hpp"
#include "support/build_paths.hpp"

namespace mailroom::test {
namespace {

std::string unique_name() {
  static std::atomic<int> count{0};
  return "mailroom_test_" + std::to_string(getpid()) + "_" + std::to_string(++count);
}

/// Each build has a template of its own: another one may migrate to something else.
std::string template_name() {
  const auto built = std::filesystem::last_write_time(mailroom_binary).time_since_epoch().count();
  return fmt::format("mailroom_template_{:016x}",
                     std::hash<std::string>{}(mailroom_binary + std::to_string(built)));
}

/// A template is closed once it is migrated: no session may be connected to what PostgreSQL copies.
bool is_ready(db::Connection& admin, const std::string& name) {
  return !admin.run("SELECT FROM pg_database WHERE datname = $1 AND NOT datallowconn", name).empty();
}

/// Returns the name of a database to copy, which the first test on the server migrates.
std::string migrated_template(db::Connection& admin) {
  const auto name = template_name();
  if (is_ready(admin, name)) return name;
  admin.run("SELECT pg_advisory_lock(hashtext($1))", name);
  if (!is_ready(admin, name)) {
    // A test that was killed may have left half of one.
    admin.run("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)");
    admin.run("CREATE DATABASE " + name);
    migrate(*std::make_unique<db::Connection>("dbname=" + name, "test"));
    // The first session after a migration keeps its catalogue in a file, and each copy has it.
    db::Connection("dbname=" + name, "test");
    admin.run("ALTER DATABASE " + name + " ALLOW_CONNECTIONS false");
  }
  admin.run("SELECT pg_advisory_unlock(hashtext($1))", name);
  return name;
}

}  // namespace

TestDatabase::TestDatabase(Schema schema, const std::string& options) : name_(unique_name()) {
  if (std::getenv("MAILROOM_TEST_PG") == nullptr) {
    throw std::runtime_error("these tests need a temporary server: run them through scripts/with-postgres");
  }
  db::Connection admin("dbname=postgres", "test");
  if (schema == Schema::current && options.empty()) {
    // Where PostgreSQL can copy by WAL too, it takes twice as long for that.
    const auto copy = value<int>(admin, "SELECT current_setting('server_version_num')") < 150000
                          ? ""
                          : " STRATEGY file_copy";
    admin.run("CREATE DATABASE " + name_ + " TEMPLATE " + migrated_template(admin) + copy);
    // What every copy is until it is adopted.
    connect()->run(
        "UPDATE mailroom_home SET database = (SELECT oid FROM pg_database WHERE datname = current_database())");
    return;
  }
  admin.run("CREATE DATABASE " + name_ + " " + options);
  if (schema == Schema::current) migrate(*connect());
}

TestDatabase::~TestDatabase() {
  db::Connection("dbname=postgres", "test").run("DROP DATABASE IF EXISTS " + name_ + " WITH (FORCE)");
}

std::unique_ptr<db::Connection> TestDatabase::connect(const std::string& purpose) const {
  return std::make_unique<db::Connection>(conninfo(), purpose);
}

schema::SchemaAuthor test_author() {
  return {.actor = "test@host", .reason = "", .program_version = "test"};
}

void migrate(db::Connection& connection) {
  schema::Migrator migrator(connection, test_author());
  const auto state = schema::recognised(connection, migrator.begin());
  schema::MigrationObserver nobody;
  migrator.run(state,
               schema::with_functions(schema::plan_up(schema::embedded_migrations(), state), state,
                                      schema::embedded_functions().migration),
               nobody);
  // The session continues without the migration lock.
  connection.run("SELECT pg_advisory_unlock_all()");
}

int locks(db::Connection& connection, const std::string& condition) {
  return value<int>(connection,
                    "SELECT count(*) FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE "
                    "datname = current_database()) AND " +
                        condition);
}

bool knows_setting(db::Connection& connection, const std::string& name) {
  return !connection.run("SELECT FROM pg_settings WHERE name = $1", name).empty();
}

void insert_accounts(db::Connection& connection, int count, const std::string& prefix) {
  connection.run(
      "INSERT INTO accounts (email, login) SELECT $2 || g || '@test.example', $2 || g FROM "
      "generate_series(1, $1) g",
      count, prefix);
}

void load_accounts(db::Connection& connection, int count, const std::string& prefix,
                   const std::string& owner) {
  connection.transact([&](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET LOCAL session_replication_role = replica");
    db::Connection::execute(transaction,
                            "WITH made AS (INSERT INTO accounts (email, login) SELECT $2 || g || "
                            "'@test.example', $2 || g FROM generate_series(1, $1) g RETURNING id) "
                            "INSERT INTO tokens (id, account, action) SELECT nextval('tokens_id_seq'), " +
                                owner + ", 'activation' FROM made",
                            count, prefix);
  });
}

std::unique_ptr<db::Connection> begin_insert(const TestDatabase& database, int count,
                                             const std::string& prefix, const std::string& purpose) {
  auto connection = database.connect(purpose);
  connection->run("BEGIN");
  insert_accounts(*connection, count, prefix);
  return connection;
}

}  // namespace mailroom::test
