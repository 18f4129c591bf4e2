#pragma once

#include <string>

#include "support/test_database.hpp"

namespace mailroom::test {

/// A login role that is dropped with its privileges, and with what it owns in `database`. Roles belong to the
/// server; the name is unique there.
class TestRole {
 public:
  explicit TestRole(const TestDatabase& database, const std::string& suffix = "role")
      : database_(database), name_(database.name() + "_" + suffix) {
    database_.connect()->run("CREATE ROLE " + name_ + " LOGIN");
  }
  ~TestRole() {
    const auto connection = database_.connect();
    connection->run("DROP OWNED BY " + name_ + " CASCADE");
    connection->run("DROP ROLE " + name_);
  }
  TestRole(const TestRole&) = delete;
  TestRole& operator=(const TestRole&) = delete;

  const std::string& name() const { return name_; }
  std::string conninfo() const { return database_.conninfo() + " user=" + name_; }

 private:
  const TestDatabase& database_;
  std::string name_;
};

}  // namespace mailroom::test
