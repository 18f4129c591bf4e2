// reschedule: shows which messages wait for their time, asks, and moves them to another one.

#include <algorithm>
#include <fmt/format.h>

#include "audit/timeline.hpp"
#include "base/json.hpp"
#include "base/wording.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/message/message_plans.hpp"
#include "cmd/message/message_report.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::int64_t most_rescheduled = 100'000;
constexpr std::size_t rescheduled_at_once = 200;
constexpr std::size_t most_in_plan = 100;

std::vector<messages::MessageSummary> read_scheduled(db::Connection& connection,
                                                     const MessageOptions& options) {
  if (options.names.empty()) {
    auto selection = read_selectors(connection, options.selectors, false);
    selection.states = {"scheduled"};
    return messages::list_messages(connection, selection, most_rescheduled);
  }
  std::vector<messages::MessageSummary> found;
  for (const auto& name : options.names)
    found.push_back(messages::read_message(connection, messages::message_named(connection, name)).summary);
  return found;
}

std::string render_reschedule_plan(const std::vector<messages::MessageSummary>& scheduled, std::size_t others,
                                   Moment send_after, Moment now, std::size_t width) {
  const std::vector<messages::MessageSummary> shown(
      scheduled.begin(),
      scheduled.begin() + static_cast<std::ptrdiff_t>(std::min(scheduled.size(), most_in_plan)));
  auto text = shown.empty() ? std::string() : render_message_list(shown, now, width);
  const auto count = static_cast<std::int64_t>(scheduled.size());
  if (shown.size() < scheduled.size())
    text +=
        fmt::format("and {}\n", counted(count - static_cast<std::int64_t>(shown.size()), "older message"));
  text += count == 0
              ? std::string("No message would be moved.\n")
              : fmt::format(
                    "{}{} would leave {}.\n", text.empty() ? "" : "\n", counted(count, "message"),
                    send_after <= now ? std::string("at once") : "from " + moment_text(send_after) + " on");
  if (others > 0)
    text +=
        fmt::format("{} not wait for {} time: sent, cancelled or due already.\n",
                    counted(static_cast<std::int64_t>(others), "message") + (others == 1 ? " does" : " do"),
                    others == 1 ? "its" : "their");
  return text;
}

void check_reschedule_options(const MessageOptions& options) {
  if (options.names.empty() == options.selectors.empty()) {
    throw Error(ExitCode::usage,
                options.names.empty() ? "no message is named" : "messages are named by id and by selectors",
                "give ids, or selectors such as --reference order:17");
  }
  audit::parse_period(options.selectors.since, options.selectors.until, {});
  check_names(options.names, "mailroom message reschedule");
  read_send_after(options.send.send_after, {});
}

std::int64_t move_in_pages(db::Connection& connection, const std::vector<messages::MessageSummary>& scheduled,
                           Moment send_after, const queue::OperationAuthor& author) {
  std::int64_t moved = 0;
  for (std::size_t done = 0; done < scheduled.size(); done += rescheduled_at_once) {
    std::vector<std::int64_t> ids;
    for (std::size_t i = done; i < std::min(done + rescheduled_at_once, scheduled.size()); ++i)
      ids.push_back(scheduled[i].id);
    moved += messages::reschedule_messages(connection, ids, send_after, author);
  }
  return moved;
}

std::string rescheduled_text(std::int64_t moved) {
  return fmt::format("done: {} moved\n", counted(moved, "message"));
}

std::string rescheduled_json(const std::vector<messages::MessageSummary>& scheduled, std::size_t others,
                             Moment send_after, std::optional<std::int64_t> moved) {
  auto ids = nlohmann::ordered_json::array();
  for (const auto& message : scheduled)
    ids.push_back(message.id);
  const nlohmann::ordered_json object{{"messages", ids},
                                      {"send_after", moment_text(send_after)},
                                      {"not_scheduled", others},
                                      {"carried_out", moved.has_value()},
                                      {"moved", moved.value_or(0)}};
  return json_text(object) + "\n";
}

}  // namespace

MessagePlan plan_rescheduling(db::Connection& connection, std::int64_t message, Moment send_after,
                              std::size_t width) {
  std::vector<messages::MessageSummary> scheduled{messages::read_message(connection, message).summary};
  const auto others = std::erase_if(scheduled, [](const auto& each) { return !each.has_state("scheduled"); });
  MessagePlan plan;
  plan.text = render_reschedule_plan(scheduled, others, send_after, connection.server_time(), width);
  for (const auto& each : scheduled)
    plan.ids.push_back(each.id);
  return plan;
}

std::string carry_out_rescheduling(db::Connection& connection, const MessagePlan& plan, Moment send_after,
                                   const queue::OperationAuthor& author) {
  return rescheduled_text(messages::reschedule_messages(connection, plan.ids, send_after, author));
}

ExitCode message_reschedule(const MessageOptions& options, Context& context) {
  check_reschedule_options(options);
  const auto connection = context.connect_to_schema("message");
  const auto waits = context.watch_waits(*connection, "message");
  const auto now = connection->server_time();
  const auto send_after = read_send_after(options.send.send_after, now);
  auto scheduled = read_scheduled(*connection, options);
  const auto others =
      std::erase_if(scheduled, [](const auto& message) { return !message.has_state("scheduled"); });
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_reschedule_plan(scheduled, others, send_after, now, context.out().width()));
  if (options.dry_run || scheduled.empty()) {
    context.print(json              ? rescheduled_json(scheduled, others, send_after, std::nullopt)
                  : options.dry_run ? "dry run: nothing was changed\n"
                                    : "nothing to do\n");
    return ExitCode::done;
  }
  confirm(context, fmt::format("move {}?", counted(static_cast<std::int64_t>(scheduled.size()), "message")));
  const auto moved =
      move_in_pages(*connection, scheduled, send_after, queue::operator_author(*connection, options.reason));
  context.print(json ? rescheduled_json(scheduled, others, send_after, moved) : rescheduled_text(moved));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
