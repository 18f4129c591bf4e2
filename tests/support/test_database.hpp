#pragma once

#include <memory>
#include <string>

#include "db/connection.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom::test {

/// A temporary database on the server that scripts/with-postgres started. Fails the test without such a
/// server, so that no real server is ever used.
class TestDatabase {
 public:
  enum class Schema {
    none,
    current,  ///< a copy of a database that was migrated once for all tests, unless there are options
  };

  /// `options` follow the name in CREATE DATABASE.
  explicit TestDatabase(Schema schema = Schema::current, const std::string& options = {});
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  const std::string& name() const { return name_; }
  std::string conninfo() const { return "dbname=" + name_; }
  std::unique_ptr<db::Connection> connect(const std::string& purpose = "test") const;

 private:
  std::string name_;
};

/// A database, and a session of its owner.
struct DatabaseRig {
  TestDatabase database;
  std::unique_ptr<db::Connection> connection = database.connect();

  explicit DatabaseRig(TestDatabase::Schema schema = TestDatabase::Schema::current) : database(schema) {}
};

/// The author of schema changes by tests.
schema::SchemaAuthor test_author();

/// Migrates `connection`'s database to the newest version.
void migrate(db::Connection& connection);

/// True if the server has this setting, which may be new in a later version of PostgreSQL.
bool knows_setting(db::Connection& connection, const std::string& name);

/// The number of locks on relations and advisory locks in `connection`'s database for which `condition` on
/// columns of pg_locks is true. Other databases have relations of the same oids.
int locks(db::Connection& connection, const std::string& condition);

/// Inserts `count` accounts whose logins begin with `prefix`, in one statement; each gets its token.
void insert_accounts(db::Connection& connection, int count, const std::string& prefix = "user");

/// Like insert_accounts(), many in a fraction of the time: it does the work of the triggers in one statement,
/// and notifies nobody. `owner` is the account of a token, by the `id` of the account that it is made with.
void load_accounts(db::Connection& connection, int count, const std::string& prefix = "user",
                   const std::string& owner = "id");

/// Returns a session with an open transaction that has inserted accounts.
std::unique_ptr<db::Connection> begin_insert(const TestDatabase& database, int count,
                                             const std::string& prefix, const std::string& purpose = "test");

/// Returns the single value of a query.
template <typename T>
T value(db::Connection& connection, const std::string& sql) {
  return connection.run(sql)[0][0].template as<T>();
}

/// The SQLSTATE and the message of the error that `sql` ends with; empty if it succeeds.
inline std::string refusal(db::Connection& connection, const std::string& sql) {
  try {
    connection.run(sql);
  } catch (const db::DatabaseError& error) {
    return std::string(error.sqlstate()) + " " + error.what();
  }
  return {};
}

}  // namespace mailroom::test
