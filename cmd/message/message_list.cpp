// list and show.

#include <fmt/format.h>

#include "audit/timeline.hpp"
#include "base/json.hpp"
#include "base/wording.hpp"
#include "cmd/message/message_action.hpp"
#include "cmd/message/message_report.hpp"

namespace mailroom::cmd {

messages::MessageSelection read_selectors(db::Connection& connection, const MessageSelectors& selectors,
                                          bool limits_age) {
  auto selection = selectors.typed;
  const auto now = connection.server_time();
  const auto period = audit::parse_period(selectors.since, selectors.until, now);
  if (!selectors.since.empty()) selection.since = period.since;
  if (!selectors.until.empty()) selection.until = period.until;
  const bool is_of_schedule = selection.states == std::vector<std::string>{"scheduled"};
  const bool is_of_one_mail = !selection.mail.queue_ids.empty() || !selection.mail.message_ids.empty();
  if (limits_age && selectors.since.empty() && selection.recipients.empty() && selection.references.empty() &&
      !is_of_schedule && !is_of_one_mail)
    selection.since = now - std::chrono::days(1);
  return selection;
}

namespace {

void check_name(const std::string& name, const std::string& command) {
  try {
    messages::check_message_name(name);
  } catch (const Error& error) {
    if (name.find_first_of("@:") == std::string::npos) throw;
    const auto* option = name.find('@') != std::string::npos ? "recipient" : "reference";
    throw Error(ExitCode::usage, error.what(),
                fmt::format("{} --{} {} chooses by {}", command, option, shell_word(name), option));
  }
}

}  // namespace

void check_names(const std::vector<std::string>& names, const std::string& command) {
  for (const auto& name : names)
    check_name(name, command);
}

ExitCode message_list(const MessageOptions& options, Context& context) {
  audit::parse_period(options.selectors.since, options.selectors.until, {});
  const auto connection = context.connect_to_schema("message");
  const auto waits = context.watch_waits(*connection, "message");
  auto messages = messages::list_messages(*connection, read_selectors(*connection, options.selectors, true),
                                          options.limit + 1);
  const bool has_more = static_cast<std::int64_t>(messages.size()) > options.limit;
  if (has_more) messages.pop_back();
  if (context.global().output == OutputFormat::json) {
    for (const auto& message : messages)
      context.print(json_text(summary_json(message)) + "\n");
  } else {
    // A program that reads the list, such as grep, needs whole addresses.
    constexpr std::size_t widest_list = 1000;
    context.print(render_message_list(messages, connection->server_time(),
                                      context.out().columns().value_or(widest_list)));
  }
  if (has_more)
    context.log().warn("older messages match too: --limit shows more, and --until or another selector others",
                       {{"limit", options.limit}});
  return ExitCode::done;
}

ExitCode message_show(const MessageOptions& options, Context& context) {
  check_names(options.names, "mailroom message list");
  const auto connection = context.connect_to_schema("message");
  std::vector<std::int64_t> ids;
  for (const auto& name : options.names)
    ids.push_back(messages::message_named(*connection, name));
  const auto require_one = [&](const char* option) {
    if (ids.size() > 1) throw Error(ExitCode::usage, fmt::format("{} is for one message", option));
  };
  if (options.rendered) {
    require_one("--rendered");
    return message_show_rendered(options, context, *connection, ids.front());
  }
  if (options.raw) {
    require_one("--raw");
    context.out().write(messages::read_raw_mail(*connection, ids.front()));
    return ExitCode::done;
  }
  for (const auto id : ids) {
    const auto message = messages::read_message(*connection, id);
    if (context.global().output == OutputFormat::json) {
      context.print(json_text(message_json(message)) + "\n");
    } else {
      if (id != ids.front()) context.print("\n");
      context.print(render_message(message, context.out().width()));
    }
  }
  return ExitCode::done;
}

}  // namespace mailroom::cmd
