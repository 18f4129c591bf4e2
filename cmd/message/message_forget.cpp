// message forget: shows what is on record of somebody, asks, and removes it.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cmd/message/message_action.hpp"
#include "messages/forgetting.hpp"

namespace mailroom {
namespace {

ForgetRequest request_of(const MessageOptions& options) {
  const auto& references = options.selectors.typed.references;
  if (options.names.empty() == references.empty()) {
    throw Error(ExitCode::usage,
                references.empty() ? "nobody is named" : "an address and --reference are both given",
                "mailroom message forget ada@example.org, or --reference user:17");
  }
  for (const auto& name : options.names) {
    if (name.find('@') == std::string::npos)
      throw Error(ExitCode::usage, fmt::format("'{}' is no address", shown_text(name)),
                  "mailroom message forget ada@example.org");
  }
  return {.addresses = options.names, .reference = references.empty() ? "" : references.front()};
}

std::string render_plan(const ForgetPlan& plan) {
  std::string text;
  if (plan.empty()) {
    text = "Nothing is on record.\n";
  } else {
    text = fmt::format("{} and {} would lose address, content and what was said of them, for good.\n",
                       counted(plan.messages, "message"), counted(plan.deliveries, "delivery record"));
  }
  if (plan.waiting > 0)
    text += fmt::format("{} not left yet, and {} cancelled.\n",
                        counted(plan.waiting, "message") + (plan.waiting == 1 ? " has" : " have"),
                        plan.waiting == 1 ? "is" : "are");
  if (plan.shared > 0)
    text += fmt::format("{} to others too: they keep the rest of the content.\n",
                        counted(plan.shared, "message") + (plan.shared == 1 ? " goes" : " go"));
  if (plan.accounts > 0)
    text += fmt::format(
        "{} this address. Accounts are the application's: delete the row, and its tokens go with it.\n",
        counted(plan.accounts, "account") + (plan.accounts == 1 ? " has" : " have"));
  return text;
}

std::string forget_json(const ForgetPlan& plan, const std::optional<Forgotten>& done) {
  nlohmann::ordered_json object{{"messages", plan.messages}, {"shared", plan.shared},
                                {"waiting", plan.waiting},   {"deliveries", plan.deliveries},
                                {"accounts", plan.accounts}, {"carried_out", done.has_value()},
                                {"cancelled", nullptr},      {"sending", nullptr}};
  if (done) {
    object["cancelled"] = done->cancelled;
    object["sending"] = done->sending;
  }
  return json_text(object) + "\n";
}

std::string done_text(const Forgotten& done) {
  return fmt::format("done: {} and {} forgotten, {} cancelled\n", counted(done.messages, "message"),
                     counted(done.deliveries, "delivery record"), done.cancelled);
}

}  // namespace

ExitCode message_forget(const MessageOptions& options, Context& context) {
  const auto request = request_of(options);
  const auto connection = context.connect_to_schema("message");
  const auto waits = context.watch_waits(*connection, "message");
  const auto plan = plan_forgetting(*connection, request);
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_plan(plan));
  if (options.dry_run || plan.empty()) {
    context.print(json              ? forget_json(plan, std::nullopt)
                  : options.dry_run ? "dry run: nothing was changed\n"
                                    : "nothing to do\n");
    return ExitCode::done;
  }
  confirm(context, "remove it?");
  const auto done = forget(*connection, request, operator_author(*connection, options.reason));
  context.print(json ? forget_json(plan, done) : done_text(done));
  if (done.sending == 0) return ExitCode::done;
  throw Error(ExitCode::unusable,
              fmt::format("{} leaving just now, and the record of that will have the address",
                          counted(done.sending, "mail") + (done.sending == 1 ? " is" : "s are")),
              "run the command again in a moment");
}

}  // namespace mailroom
