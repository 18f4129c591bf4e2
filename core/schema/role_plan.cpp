// Looks which roles and memberships there are. PostgreSQL has no CREATE ROLE IF NOT EXISTS.

#include "schema/role_plan.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/text.hpp"
#include "db/search_path.hpp"
#include "schema/roles.hpp"

namespace mailroom::schema {
namespace {

bool has_role(db::Connection& connection, const std::string& name) {
  return !connection.run("SELECT FROM pg_roles WHERE rolname = $1", name).empty();
}

/// Before PostgreSQL 16 CREATEROLE gave any membership; since then it takes ADMIN OPTION, which the creator
/// of a role has.
constexpr const char* membership_sql = R"(
SELECT coalesce(pg_has_role(m.oid, g.oid, 'MEMBER'), false) AS exists,
  s.rolsuper OR g.oid IS NULL OR pg_has_role(g.oid, 'MEMBER WITH ADMIN OPTION')
  OR s.rolcreaterole AND current_setting('server_version_num')::integer < 160000 AS may
FROM pg_roles s LEFT JOIN pg_roles m ON m.rolname = $1 LEFT JOIN pg_roles g ON g.rolname = $2
WHERE s.rolname = current_user)";

void plan_membership(db::Connection& connection, const std::string& member, const std::string& group,
                     RolePlan& plan) {
  const auto row = connection.run(membership_sql, member, group)[0];
  if (row.flag("exists")) return;
  (row.flag("may") ? plan.memberships : plan.left).push_back(fmt::format("GRANT {} TO {};", group, member));
}

std::string creation_of(const std::string& name) {
  const auto is_it = [&](const Role& role) { return name.ends_with("_" + std::string(role.name)); };
  return fmt::format("CREATE ROLE {} {};", name, std::ranges::find_if(roles(), is_it)->attributes);
}

void require_role_maker(db::Connection& connection, const RolePlan& plan) {
  const auto row = connection.run(
      "SELECT s.rolname AS role, s.rolsuper OR s.rolcreaterole AS may_create, "
      "pg_has_role(c.relowner, 'USAGE') AS may_grant, pg_get_userbyid(c.relowner) AS owner "
      "FROM pg_roles s, pg_class c WHERE s.rolname = current_user AND c.oid = "
      "to_regclass(format('%I.tokens', current_schema()))")[0];
  const auto role = row.text("role");
  constexpr auto other_way =
      "a superuser can do it too; mailroom init --roles --dry-run prints the SQL, for whoever may";
  if (!row.flag("may_grant")) {
    throw Error(ExitCode::failed, fmt::format("{} may not grant rights on mailroom's tables", role),
                fmt::format("run it as their owner, {}; {}", row.text("owner"), other_way));
  }
  if (plan.missing.empty() || row.flag("may_create")) return;
  std::vector<std::string> statements;
  for (const auto& name : plan.missing)
    statements.push_back(creation_of(name));
  throw Error(ExitCode::failed, fmt::format("{} may not create roles: it lacks CREATEROLE", role),
              fmt::format("as a role that has it: {} Then run mailroom init --roles again; {}",
                          joined(statements), other_way));
}

}  // namespace

std::vector<std::string> RolePlan::statements() const {
  std::vector<std::string> all;
  for (const auto& name : missing)
    all.push_back(creation_of(name));
  for (const auto* list : {&grants, &memberships, &left})
    all.insert(all.end(), list->begin(), list->end());
  return all;
}

RolePlan plan_roles(db::Connection& connection, const std::string& prefix) {
  RolePlan plan;
  plan.grants = grant_statements(db::quoted_schema(connection), prefix);
  const auto full_name = [&](std::string_view name) { return fmt::format("{}_{}", prefix, name); };
  for (const auto& role : roles()) {
    if (!has_role(connection, full_name(role.name))) plan.missing.push_back(full_name(role.name));
  }
  for (const auto& role : roles()) {
    for (const auto group : split(role.groups, ' ')) {
      if (!group.empty()) plan_membership(connection, full_name(role.name), full_name(group), plan);
    }
    if (!role.servers.empty())
      plan_membership(connection, full_name(role.name), std::string(role.servers), plan);
  }
  return plan;
}

void make_roles(db::Connection& connection, const RolePlan& plan) {
  require_role_maker(connection, plan);
  auto now = plan;
  now.left.clear();
  connection.transact([&](pqxx::work& transaction) {
    for (const auto& statement : now.statements())
      db::Connection::execute(transaction, statement);
  });
}

}  // namespace mailroom::schema
