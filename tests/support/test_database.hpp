#pragma once

#include <memory>
#include <string>

#include "db/connection.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom::test {

/// A database of the test's own on the server that scripts/with-postgres started, dropped at the end. Fails
/// the test when there is no such server, so that nobody's real one is ever touched.
class TestDatabase {
 public:
  enum class Schema { none, current };

  /// `options` follow the name in CREATE DATABASE.
  explicit TestDatabase(Schema schema = Schema::current, const std::string& options = {});
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  const std::string& name() const { return name_; }
  std::string conninfo() const { return "dbname=" + name_; }
  std::unique_ptr<Connection> connect(const std::string& purpose = "test") const;

 private:
  std::string name_;
};

/// Under whose name a test changes a schema.
SchemaAuthor test_author();

/// Brings `connection`'s database to the newest version.
void migrate(Connection& connection);

/// Whether the server has this setting, which may have come with a newer version of PostgreSQL.
bool knows_setting(Connection& connection, const std::string& name);

/// `count` accounts whose logins begin with `prefix`, in one statement; returns nothing, each gets its token.
void insert_accounts(Connection& connection, int count, const std::string& prefix = "user");

/// The one value of a query's one row.
template <typename T>
T value(Connection& connection, const std::string& sql) {
  return connection.run(sql)[0][0].template as<T>();
}

}  // namespace mailroom::test
