// roles: who asks for how much, and how much each may ask for.

#include <algorithm>
#include <fmt/format.h>

#include "audit/timeline.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/terminal/text_table.hpp"
#include "messages/role_counts.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::cmd {
namespace {

using RolesJson = nlohmann::ordered_json;

constexpr auto left_side = TextTable::Align::left;
constexpr auto right_side = TextTable::Align::right;

std::string limit_text(const messages::RoleLimits& limits, const std::string& role) {
  const auto found = limits.find(role);
  return found == limits.end() || !found->second ? "-" : config::format_rate(*found->second);
}

/// With those that have a limit and asked for nothing.
std::vector<messages::RoleCount> with_limited(std::vector<messages::RoleCount> counts,
                                              const messages::RoleLimits& limits) {
  for (const auto& [role, limit] : limits) {
    if (std::ranges::find(counts, role, &messages::RoleCount::role) == counts.end())
      counts.push_back({.role = role});
  }
  return counts;
}

RolesJson role_json(const messages::RoleCount& count, const messages::RoleLimits& limits) {
  auto hours = RolesJson::array();
  for (const auto& [hour, mails] : count.hours)
    hours.push_back(
        {{"at", moment_text(hour)}, {"messages", mails.messages}, {"recipients", mails.recipients}});
  const auto limit = limit_text(limits, count.role);
  return {{"role", count.role},
          {"messages", count.all.messages},
          {"recipients", count.all.recipients},
          {"last_hour", count.last_hour},
          {"busiest_hour", count.busiest_hour()},
          {"last_at", count.hours.empty() ? RolesJson(nullptr) : RolesJson(moment_text(count.last))},
          {"limit", limit == "-" ? RolesJson(nullptr) : RolesJson(limit)},
          {"hours", hours}};
}

TextTable roles_table(const std::vector<messages::RoleCount>& counts, const messages::RoleLimits& limits) {
  TextTable table({{"role", left_side, true},
                   {"messages", right_side, true},
                   {"recipients", right_side, true},
                   {"last hour", right_side, true},
                   {"busiest", right_side, true},
                   {"limit", right_side, true},
                   {"last"}});
  for (const auto& each : counts)
    table.add({shown_text(each.role), with_thousands(each.all.messages), with_thousands(each.all.recipients),
               with_thousands(each.last_hour), with_thousands(each.busiest_hour()),
               limit_text(limits, each.role), each.hours.empty() ? "-" : moment_text(each.last)});
  return table;
}

/// Newest first; of an hour the role that asked for most.
TextTable hours_table(const std::vector<messages::RoleCount>& counts) {
  struct Line {
    Moment hour{};
    std::string role{};
    messages::MailCount mails{};
  };
  std::vector<Line> lines;
  for (const auto& each : counts) {
    for (const auto& [hour, mails] : each.hours)
      lines.push_back({hour, each.role, mails});
  }
  std::ranges::stable_sort(lines, std::ranges::greater(),
                           [](const Line& line) { return std::pair(line.hour, line.mails.messages); });
  TextTable table({{"hour", left_side, true},
                   {"role", left_side, true},
                   {"messages", right_side, true},
                   {"recipients", right_side, true}});
  for (const auto& line : lines)
    table.add({moment_text(line.hour), shown_text(line.role), with_thousands(line.mails.messages),
               with_thousands(line.mails.recipients)});
  return table;
}

}  // namespace

ExitCode message_roles(const MessageOptions& options, Context& context) {
  const auto& selectors = options.selectors;
  audit::parse_period(selectors.since, selectors.until, {});
  const auto connection = context.connect_to_schema("message");
  if (!options.limits.empty())
    messages::set_role_limits(*connection, options.limits,
                              queue::operator_author(*connection, options.reason));
  const auto now = connection->server_time();
  const auto period = audit::parse_period(selectors.since, selectors.until, now);
  // Whoever is asking may be a little ahead of a transaction that has begun.
  const auto until = selectors.until.empty() ? now + std::chrono::seconds(1) : period.until;
  const auto since = selectors.since.empty() ? until - std::chrono::days(1) : period.since;
  const auto limits = messages::read_role_limits(*connection);
  const auto counts = with_limited(messages::count_by_role(*connection, since, until), limits);
  if (context.global().output == OutputFormat::json) {
    for (const auto& each : counts)
      context.print(json_text(role_json(each, limits)) + "\n");
    return ExitCode::done;
  }
  const auto table = options.by_hour ? hours_table(counts) : roles_table(counts, limits);
  context.print(table.empty() ? "nobody asked for a message\n" : table.render(context.out().width()));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
