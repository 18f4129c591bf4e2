// cancel: shows which messages have not left, asks, and cancels them.

#include <algorithm>
#include <fmt/format.h>

#include "audit/timeline.hpp"
#include "base/json.hpp"
#include "base/wording.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/message/message_report.hpp"

namespace mailroom::cmd {
namespace {

/// More are chosen by a narrower selector.
constexpr std::int64_t most_at_once = 10'000;

void check_cancel_options(const MessageOptions& options) {
  if (options.names.empty() == options.selectors.empty()) {
    throw Error(ExitCode::usage,
                options.names.empty() ? "no message is named" : "messages are named by id and by selectors",
                "give ids, or selectors such as --reference order:17");
  }
  audit::parse_period(options.selectors.since, options.selectors.until, {});
}

std::vector<messages::MessageSummary> read_named(db::Connection& connection, const MessageOptions& options) {
  std::vector<messages::MessageSummary> messages;
  for (const auto& name : options.names)
    messages.push_back(messages::read_message(connection, messages::message_named(connection, name)).summary);
  return messages;
}

std::vector<messages::MessageSummary> read_selected(db::Connection& connection,
                                                    const MessageSelectors& selectors) {
  auto messages =
      messages::list_messages(connection, read_selectors(connection, selectors, false), most_at_once + 1);
  if (static_cast<std::int64_t>(messages.size()) > most_at_once) {
    throw Error(ExitCode::declined, fmt::format("more than {} match", counted(most_at_once, "message")),
                "more selectors narrow it");
  }
  return messages;
}

/// True if a mail of it may still be sent.
bool may_be_cancelled(const messages::MessageSummary& message) {
  return std::ranges::any_of(message.states, [](const auto& state) {
    return state.first == "waiting" || state.first == "scheduled" || state.first == "deferred" ||
           state.first == "leased" || state.first == "in_gap" || state.first == "in_replay" ||
           state.first == "not_taken" || state.first == "no_token";
  });
}

std::string render_cancel_plan(const std::vector<messages::MessageSummary>& open, std::size_t closed,
                               Moment now, std::size_t width) {
  auto text = open.empty() ? std::string() : render_message_list(open, now, width) + "\n";
  text += open.empty() ? std::string("No message would be cancelled.\n")
                       : fmt::format("{} would be cancelled, for good.\n",
                                     counted(static_cast<std::int64_t>(open.size()), "message"));
  if (closed > 0)
    text +=
        fmt::format("{} nothing to cancel: sent, cancelled or given up before.\n",
                    counted(static_cast<std::int64_t>(closed), "message") + (closed == 1 ? " has" : " have"));
  return text;
}

std::int64_t count_of(const std::vector<messages::Cancellation>& results, std::string_view result) {
  return std::ranges::count_if(results, [&](const auto& each) { return each.result == result; });
}

std::string results_text(const std::vector<messages::Cancellation>& results) {
  auto text = fmt::format("done: {} cancelled\n", counted(count_of(results, "cancelled"), "message"));
  if (const auto count = count_of(results, "sending"); count > 0)
    text += fmt::format("{} being sent just now: its mail may still leave\n",
                        counted(count, "message") + (count == 1 ? " is" : " are"));
  if (const auto count = count_of(results, "sent"); count > 0)
    text += fmt::format("{} had left meanwhile\n", counted(count, "message"));
  if (const auto count = count_of(results, ""); count > 0)
    text += fmt::format("{} not cancelled: of another role, or cancelled meanwhile\n",
                        counted(count, "message") + (count == 1 ? " was" : " were"));
  return text;
}

std::string cancel_json(const std::vector<messages::MessageSummary>& open, std::size_t closed,
                        const std::optional<std::vector<messages::Cancellation>>& results) {
  nlohmann::ordered_json object{{"messages", nlohmann::ordered_json::array()},
                                {"not_open", closed},
                                {"carried_out", results.has_value()}};
  for (const auto& message : open) {
    nlohmann::ordered_json line{{"id", message.id}, {"result", nullptr}};
    if (results) {
      const auto found = std::ranges::find(*results, message.id, &messages::Cancellation::message);
      if (found != results->end() && !found->result.empty()) line["result"] = found->result;
    }
    object["messages"].push_back(std::move(line));
  }
  return json_text(object) + "\n";
}

}  // namespace

ExitCode message_cancel(const MessageOptions& options, Context& context) {
  check_cancel_options(options);
  check_names(options.names, "mailroom message cancel");
  const auto connection = context.connect_to_schema("message");
  const auto waits = context.watch_waits(*connection, "message");
  auto open = options.names.empty() ? read_selected(*connection, options.selectors)
                                    : read_named(*connection, options);
  const auto closed = std::erase_if(open, [](const auto& message) { return !may_be_cancelled(message); });
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_cancel_plan(open, closed, connection->server_time(), context.out().width()));
  if (options.dry_run || open.empty()) {
    context.print(json              ? cancel_json(open, closed, std::nullopt)
                  : options.dry_run ? "dry run: nothing was changed\n"
                                    : "nothing to do\n");
    return ExitCode::done;
  }
  confirm(context, fmt::format("cancel {}?", counted(static_cast<std::int64_t>(open.size()), "message")));
  std::vector<std::int64_t> ids;
  for (const auto& message : open)
    ids.push_back(message.id);
  const auto results =
      messages::cancel_messages(*connection, ids, queue::operator_author(*connection, options.reason));
  context.print(json ? cancel_json(open, closed, results) : results_text(results));
  return ExitCode::done;
}

}  // namespace mailroom::cmd
