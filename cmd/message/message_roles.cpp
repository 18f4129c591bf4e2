// roles.

#include <fmt/format.h>

#include "audit/timeline.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/terminal/text_table.hpp"
#include "messages/role_counts.hpp"

namespace mailroom::cmd {

ExitCode message_roles(const MessageOptions& options, Context& context) {
  const auto& selectors = options.selectors;
  audit::parse_period(selectors.since, selectors.until, {});
  const auto connection = context.connect_to_schema("message");
  const auto now = connection->server_time();
  const auto period = audit::parse_period(selectors.since, selectors.until, now);
  // Whoever is asking may be a little ahead of a transaction that has begun.
  const auto until = selectors.until.empty() ? now + std::chrono::seconds(1) : period.until;
  const auto since = selectors.since.empty() ? until - std::chrono::days(1) : period.since;
  const auto counts = messages::count_by_role(*connection, since, until);
  if (context.global().output == OutputFormat::json) {
    for (const auto& each : counts) {
      const nlohmann::ordered_json object{{"role", each.role},
                                          {"messages", each.messages},
                                          {"recipients", each.recipients},
                                          {"last_hour", each.last_hour},
                                          {"busiest_hour", each.busiest_hour},
                                          {"last_at", moment_text(each.last)}};
      context.print(json_text(object) + "\n");
    }
    return ExitCode::done;
  }
  if (counts.empty()) {
    context.print("nobody asked for a message\n");
    return ExitCode::done;
  }
  constexpr auto left = TextTable::Align::left;
  constexpr auto right = TextTable::Align::right;
  TextTable table({{"role", left, true},
                   {"messages", right, true},
                   {"recipients", right, true},
                   {"last hour", right, true},
                   {"busiest hour", right, true},
                   {"last"}});
  for (const auto& each : counts)
    table.add({shown_text(each.role), with_thousands(each.messages), with_thousands(each.recipients),
               with_thousands(each.last_hour), with_thousands(each.busiest_hour), moment_text(each.last)});
  context.print(table.render(context.out().width()));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
