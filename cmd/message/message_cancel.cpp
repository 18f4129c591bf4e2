// cancel: shows which messages have not left, asks, and cancels them.

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <map>

#include "audit/timeline.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/message/message_plans.hpp"
#include "cmd/message/message_report.hpp"
#include "cmd/terminal/progress_bar.hpp"
#include "db/open_sessions.hpp"
#include "queue/queue_definition.hpp"

namespace mailroom::cmd {
namespace {

/// More are found by their records, and of them the newest are shown.
constexpr std::size_t most_shown = 100;
constexpr std::size_t shown_of_many = 10;
/// In one transaction: a claim leases none of them until it ends.
constexpr std::size_t messages_of_page = 200;
constexpr Milliseconds progress_interval{10'000};

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

std::string cancel_json(const std::vector<std::int64_t>& open, std::size_t closed,
                        const std::optional<std::vector<messages::Cancellation>>& results) {
  nlohmann::ordered_json object{{"messages", nlohmann::ordered_json::array()},
                                {"not_open", closed},
                                {"carried_out", results.has_value()}};
  std::map<std::int64_t, std::string> result_of;
  for (const auto& result : results.value_or(std::vector<messages::Cancellation>()))
    result_of.emplace(result.message, result.result);
  // The newest first, as they are listed.
  auto ids = open;
  std::ranges::sort(ids, std::ranges::greater());
  for (const auto id : ids) {
    const auto found = result_of.find(id);
    nlohmann::ordered_json line{{"id", id}, {"result", nullptr}};
    if (found != result_of.end() && !found->second.empty()) line["result"] = found->second;
    object["messages"].push_back(std::move(line));
  }
  return json_text(object) + "\n";
}

/// What would be cancelled: the ids, and those of them that the plan shows.
struct CancelPlan {
  std::vector<std::int64_t> ids{};
  std::vector<messages::MessageSummary> shown{};
  std::size_t closed = 0;        ///< of which nothing is to be cancelled
  std::int64_t left = 0;         ///< of those, how many have left, if that was asked
  std::int64_t partly_left = 0;  ///< of `ids`, likewise for some recipient
  bool is_long = false;          ///< of many messages the records were read, and not the states
};

CancelPlan plan_of(std::vector<messages::MessageSummary> all) {
  CancelPlan plan;
  plan.closed = std::erase_if(all, [](const auto& message) { return !may_be_cancelled(message); });
  for (const auto& message : all)
    plan.ids.push_back(message.id);
  plan.shown = std::move(all);
  return plan;
}

CancelPlan plan_selected(db::Connection& connection, const messages::MessageSelection& selection) {
  auto found = messages::find_cancellable(connection, selection);
  const auto count = found.open.size();
  const std::vector<std::int64_t> newest(
      found.open.end() - static_cast<std::ptrdiff_t>(count <= most_shown ? count : shown_of_many),
      found.open.end());
  auto summaries = connection.alone([&](pqxx::transaction_base& transaction) {
    return messages::read_summaries(transaction, newest, selection.states);
  });
  const auto others = static_cast<std::size_t>(found.left + found.ended);
  if (count <= most_shown) {
    auto plan = plan_of(std::move(summaries));
    plan.closed += others;
    plan.left = found.left;
    plan.partly_left = found.partly_left;
    return plan;
  }
  return {.ids = std::move(found.open),
          .shown = std::move(summaries),
          .closed = others,
          .left = found.left,
          .partly_left = found.partly_left,
          .is_long = true};
}

/// What else stops many mails: the queue at once, or the tokens of an action with one statement.
std::string faster_ways(db::Connection& connection, const MessageSelectors& selectors) {
  const auto queues = queue::queue_names(connection);
  auto text = fmt::format("Senders go on meanwhile: mailroom queue pause {} stops them first.\n",
                          queues.size() == 1 ? shell_word(queues.front()) : "QUEUE");
  const auto& typed = selectors.typed;
  if (typed.actions.empty() || !typed.recipients.empty() || !typed.references.empty() ||
      !typed.owners.empty() || !typed.mail.empty() || !typed.states.empty())
    return text;
  text += fmt::format("mailroom revoke --action {}", shell_word(joined(typed.actions, ",")));
  if (!selectors.since.empty()) text += " --since " + shell_word(selectors.since);
  if (!selectors.until.empty()) text += " --until " + shell_word(selectors.until);
  return text + " takes seconds: it ends what waits, and leaves what is scheduled.\n";
}

std::string render_cancel_plan(const CancelPlan& plan, Moment now, std::size_t width) {
  std::string text = plan.shown.empty() ? std::string() : render_message_list(plan.shown, now, width);
  if (plan.ids.size() > plan.shown.size())
    text += fmt::format(
        "and {}\n", counted(static_cast<std::int64_t>(plan.ids.size() - plan.shown.size()), "older message"));
  if (!text.empty()) text += "\n";
  text += plan.ids.empty() ? std::string("No message would be cancelled.\n")
                           : fmt::format("{} would be cancelled, for good.\n",
                                         counted(static_cast<std::int64_t>(plan.ids.size()), "message"));
  if (plan.partly_left > 0)
    text += fmt::format("{} of them {} left for some recipients.\n", plan.partly_left,
                        plan.partly_left == 1 ? "has" : "have");
  if (plan.left > 0)
    text += fmt::format("{} left already, and cannot be called back.\n",
                        counted(plan.left, "message") + (plan.left == 1 ? " has" : " have"));
  if (const auto ended = static_cast<std::int64_t>(plan.closed) - plan.left; ended > 0)
    text += fmt::format("{} nothing to cancel: sent, cancelled or given up before.\n",
                        counted(ended, "message") + (ended == 1 ? " has" : " have"));
  return text;
}

/// Of `page` those that still have one of the selected states, where some are selected and no state was read.
std::vector<std::int64_t> still_selected(db::Connection& connection, const std::vector<std::int64_t>& page,
                                         const std::vector<std::string>& states) {
  if (states.empty()) return page;
  std::vector<std::int64_t> ids;
  for (const auto& message : connection.alone([&](pqxx::transaction_base& transaction) {
         return messages::read_summaries(transaction, page, states);
       }))
    ids.push_back(message.id);
  return ids;
}

/// Cancels them page by page, oldest first: these would leave next. `results` has what was done also if it
/// throws.
void cancel_in_pages(Context& context, db::Connection& connection, const CancelPlan& plan,
                     const std::vector<std::string>& states, const queue::OperationAuthor& author,
                     std::vector<messages::Cancellation>& results) {
  ProgressBar bar(context.err(), context.global().quiet, context.colour_on(context.err()));
  const auto total = static_cast<double>(plan.ids.size());
  auto told_at = steady_now();
  for (std::size_t done = 0; done < plan.ids.size();) {
    const auto end = std::min(done + messages_of_page, plan.ids.size());
    const std::vector<std::int64_t> page(plan.ids.begin() + static_cast<std::ptrdiff_t>(done),
                                         plan.ids.begin() + static_cast<std::ptrdiff_t>(end));
    const auto ids = plan.is_long ? still_selected(connection, page, states) : page;
    auto of_page = messages::cancel_messages(connection, ids, author);
    std::ranges::move(of_page, std::back_inserter(results));
    done = end;
    bar.show(static_cast<double>(done) / total,
             fmt::format("{} of {} messages", with_thousands(static_cast<std::int64_t>(done)),
                         with_thousands(static_cast<std::int64_t>(plan.ids.size()))));
    if (context.err().is_terminal() || steady_now() - told_at < progress_interval) continue;
    told_at = steady_now();
    context.log().info("cancelling", {{"done", done}, {"messages", plan.ids.size()}});
  }
}

}  // namespace

bool may_be_cancelled(const messages::MessageSummary& message) {
  return std::ranges::any_of(message.states, [](const auto& state) {
    return state.first == "waiting" || state.first == "scheduled" || state.first == "deferred" ||
           state.first == "leased" || state.first == "in_gap" || state.first == "in_replay" ||
           state.first == "not_taken" || state.first == "no_token";
  });
}

MessagePlan plan_cancellation(db::Connection& connection, std::int64_t message, std::size_t width) {
  auto plan = plan_of({messages::read_message(connection, message).summary});
  auto text = render_cancel_plan(plan, connection.server_time(), width);
  return {.ids = std::move(plan.ids), .text = std::move(text)};
}

std::string carry_out_cancellation(db::Connection& connection, const MessagePlan& plan,
                                   const queue::OperationAuthor& author) {
  return results_text(messages::cancel_messages(connection, plan.ids, author));
}

ExitCode message_cancel(const MessageOptions& options, Context& context) {
  check_cancel_options(options);
  check_names(options.names, "mailroom message cancel");
  const auto connection = context.connect_to_schema("message");
  const auto waits = context.watch_waits(*connection, "message");
  const auto plan = options.names.empty()
                        ? plan_selected(*connection, read_selectors(*connection, options.selectors, false))
                        : plan_of(read_named(*connection, options));
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_cancel_plan(plan, connection->server_time(), context.out().width()));
  if (!json && plan.is_long) context.say(faster_ways(*connection, options.selectors));
  if (options.dry_run || plan.ids.empty()) {
    context.print(json              ? cancel_json(plan.ids, plan.closed, std::nullopt)
                  : options.dry_run ? "dry run: nothing was changed\n"
                                    : "nothing to do\n");
    return ExitCode::done;
  }
  const auto count = static_cast<std::int64_t>(plan.ids.size());
  confirm(context, fmt::format("cancel {}?", counted(count, "message")));
  std::vector<messages::Cancellation> results;
  const auto report = [&] {
    return json ? cancel_json(plan.ids, plan.closed, results) : results_text(results);
  };
  try {
    cancel_in_pages(context, *connection, plan, options.selectors.typed.states,
                    queue::operator_author(*connection, options.reason), results);
  } catch (const db::Interrupted& error) {
    context.print(report());
    throw Error(
        error.code(),
        fmt::format("{}, after {} of {}", error.what(),
                    with_thousands(static_cast<std::int64_t>(results.size())), counted(count, "message")),
        "what is cancelled stays so; the same command goes on with the others");
  }
  context.print(report());
  return ExitCode::done;
}

}  // namespace mailroom::cmd
