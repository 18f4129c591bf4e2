// The roles for mailroom's tasks, and what each may do: the one list that `init --roles` grants, `doctor`
// compares with, and docs/security.md explains.
#pragma once

#include <compare>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schema/catalogue.hpp"

namespace mailroom::schema {

/// A group role; logins become members of it, unless it is one itself. Its name in a database is a prefix,
/// `mailroom` if nobody chose another, and this.
struct Role {
  std::string_view name;
  std::string_view task;       ///< `asks for mails`
  std::string_view groups{};   ///< the roles of this list whose rights it has too
  std::string_view servers{};  ///< a predefined role of PostgreSQL that it is a member of
  std::string_view attributes = "NOLOGIN";
};

std::span<const Role> roles();

/// `SELECT, INSERT` or `SELECT (id, email)` on one table, sequence or function.
struct Grant {
  ObjectKind kind = ObjectKind::table;
  std::string object{};
  std::string privilege{};
  std::vector<std::string> columns{};  ///< empty: all
};

/// What init --roles grants to the role `name`, without what its groups have.
std::vector<Grant> grants_of(std::string_view name);

/// A privilege on an object, or on a column of it.
struct Privilege {
  ObjectKind kind = ObjectKind::table;
  std::string object{};
  std::string column{};  ///< empty: the whole object
  std::string name{};

  auto operator<=>(const Privilege&) const = default;
};
using Privileges = std::set<Privilege>;

/// What the role `name` is given, without what its groups have.
const Privileges& given_to(std::string_view name);

/// What the role `name` may have: what it and its groups are given, and what docs/security.md lets be granted
/// by hand.
const Privileges& allowed_to(std::string_view name);

/// What every role may do.
const Privileges& allowed_to_everyone();

/// True if `held` has the privilege, or has it on the whole table.
bool holds(const Privileges& held, const Privilege& privilege);

/// The statements that give the roles `PREFIX_…` what they are given; `schema` is quoted, `prefix` needs no
/// quotes.
std::vector<std::string> grant_statements(const std::string& schema, const std::string& prefix);

}  // namespace mailroom::schema
