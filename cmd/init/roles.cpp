// Says which roles it makes, or prints the SQL for whoever may run it.

#include "cmd/init/roles.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/pattern.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/terminal/context.hpp"
#include "cmd/terminal/text_table.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/role_plan.hpp"
#include "schema/roles.hpp"

namespace mailroom::cmd {
namespace {

/// Names that need no quotes, and leave room for the longest role.
void require_prefix(const std::string& prefix) {
  if (Pattern("[a-z_][a-z0-9_]{0,49}").matches(prefix) && !prefix.starts_with("pg_")) return;
  throw Error(ExitCode::usage, fmt::format("'{}' cannot begin the name of a role", shown_text(prefix)),
              "lower-case letters, digits and _, at most 50");
}

/// `shop_producer  created  asks for mails …`
std::string role_table(const schema::RolePlan& plan, const std::string& prefix, std::size_t width) {
  TextTable table({{""}, {""}, {""}});
  for (const auto& role : schema::roles()) {
    const auto name = fmt::format("{}_{}", prefix, role.name);
    const bool is_new = std::ranges::find(plan.missing, name) != plan.missing.end();
    table.add({name, is_new ? "created" : "granted", std::string(role.task)});
  }
  return table.render(width, 0);
}

}  // namespace

ExitCode make_roles(const RoleOptions& options, Context& context) {
  require_prefix(options.prefix);
  const auto connection = context.connect("init");
  schema::require_current_schema(*connection);
  const auto plan = schema::plan_roles(*connection, options.prefix);
  if (options.dry_run) {
    context.print(fmt::format("BEGIN;\n{}\nCOMMIT;\n", joined(plan.statements(), "\n")));
    return ExitCode::done;
  }
  schema::make_roles(*connection, plan);
  context.print(role_table(plan, options.prefix, context.out().width()));
  for (const auto& statement : plan.left)
    context.log().warn(fmt::format("as a role that may: {}", statement));
  context.say(fmt::format("make logins members of them: GRANT {}_producer TO LOGIN;\n", options.prefix));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
