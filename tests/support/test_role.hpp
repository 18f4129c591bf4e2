#pragma once

#include <string>

#include "support/test_database.hpp"

namespace mailroom::test {

/// A login role that is dropped with its privileges, and with what it owns in `database`, which it may own
/// too. Roles belong to the server; the name is unique there.
class TestRole {
 public:
  explicit TestRole(const TestDatabase& database, const std::string& suffix = "role")
      : database_(database), name_(database.name() + "_" + suffix) {
    database_.connect()->run("CREATE ROLE " + name_ + " LOGIN");
  }
  ~TestRole() {
    const auto connection = database_.connect();
    if (owns_database(*connection))
      connection->run("ALTER DATABASE " + database_.name() + " OWNER TO CURRENT_USER");
    connection->run("DROP OWNED BY " + name_ + " CASCADE");
    connection->run("DROP ROLE " + name_);
  }
  TestRole(const TestRole&) = delete;
  TestRole& operator=(const TestRole&) = delete;

  const std::string& name() const { return name_; }
  std::string conninfo() const { return database_.conninfo() + " user=" + name_; }

 private:
  bool owns_database(db::Connection& connection) const {
    return !connection
                .run("SELECT FROM pg_database WHERE datname = current_database() AND datdba = $1::regrole",
                     name_)
                .empty();
  }

  const TestDatabase& database_;
  std::string name_;
};

}  // namespace mailroom::test
