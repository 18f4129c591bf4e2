// The roles of `mailroom init --roles` for the database of a test.
#pragma once

#include <fmt/format.h>
#include <memory>
#include <string>

#include "schema/role_plan.hpp"
#include "schema/roles.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

/// Each has the database's name for `mailroom`, since roles belong to the cluster, and a login that is a
/// member of it.
class DocumentedRoles {
 public:
  explicit DocumentedRoles(const TestDatabase& database) : database_(database), owner_(database.connect()) {
    make();
    for (const auto& role : schema::roles())
      owner_->run(fmt::format("CREATE ROLE {}_login LOGIN IN ROLE {}", name(role.name), name(role.name)));
  }
  ~DocumentedRoles() {
    for (const auto& role : schema::roles()) {
      owner_->run(fmt::format("DROP OWNED BY {}, {}_login", name(role.name), name(role.name)));
      owner_->run(fmt::format("DROP ROLE {}, {}_login", name(role.name), name(role.name)));
    }
  }
  DocumentedRoles(const DocumentedRoles&) = delete;
  DocumentedRoles& operator=(const DocumentedRoles&) = delete;

  /// As after an upgrade.
  void make() { schema::make_roles(*owner_, schema::plan_roles(*owner_, database_.name())); }

  std::string name(std::string_view role) const { return fmt::format("{}_{}", database_.name(), role); }
  std::string conninfo(std::string_view role) const {
    return fmt::format("{} user={}_login", database_.conninfo(), name(role));
  }
  std::unique_ptr<db::Connection> connect(std::string_view role) const {
    return std::make_unique<db::Connection>(conninfo(role), "test");
  }
  db::Connection& owner() const { return *owner_; }

 private:
  const TestDatabase& database_;
  std::unique_ptr<db::Connection> owner_;
};

}  // namespace mailroom::test
