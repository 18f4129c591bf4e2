// message forget: shows what is on record of somebody, asks, and removes it.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/message/message_action.hpp"
#include "mail/address.hpp"
#include "messages/forgetting.hpp"

namespace mailroom::cmd {
namespace {

messages::ForgetRequest request_of(const MessageOptions& options) {
  const auto& references = options.selectors.typed.references;
  if (options.names.empty() == references.empty()) {
    throw Error(ExitCode::usage,
                references.empty() ? "nobody is named" : "an address and --reference are both given",
                "mailroom message forget ada@example.org, or --reference user:17");
  }
  messages::ForgetRequest request{.addresses = {}, .reference = references.empty() ? "" : references.front()};
  for (const auto& name : options.names) {
    request.addresses.push_back(mail::address_of_mailbox(name));
    if (request.addresses.back().find('@') == std::string::npos)
      throw Error(ExitCode::usage, fmt::format("'{}' is no address", shown_text(name)),
                  "mailroom message forget ada@example.org");
  }
  return request;
}

/// `ada@example.org, bob@example.org`, or `reference user:17`.
std::string subject_text(const messages::ForgetRequest& request) {
  if (!request.reference.empty()) return "reference " + shown_text(request.reference);
  return shown_text(joined(request.addresses, ", "));
}

/// Messages to others that name the address: those that lose it, and those that keep it until they have
/// ended.
std::string named_text(const messages::ForgetPlan& plan, const messages::ForgetRequest& request) {
  std::string text;
  if (plan.named > 0)
    text += fmt::format("{} to others {} {}, and would lose it, with the content if that names it.\n",
                        counted(plan.named, "message"), plan.named == 1 ? "names" : "name",
                        subject_text(request));
  if (plan.kept > 0)
    text += fmt::format(
        "{} {} {} as reply-to, or elsewhere, and can still be sent to others: {} it until then. Run this again then.\n",
        counted(plan.kept, "message"), plan.kept == 1 ? "names" : "name", subject_text(request),
        plan.kept == 1 ? "it keeps" : "they keep");
  return text;
}

std::string render_plan(const messages::ForgetPlan& plan, const messages::ForgetRequest& request) {
  std::string text;
  if (plan.empty() && plan.kept == 0) {
    text = fmt::format("Nothing is on record of {}.\n", subject_text(request));
  } else if (plan.messages + plan.deliveries > 0) {
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
  text += named_text(plan, request);
  if (plan.others > 0)
    text += fmt::format("{} of operations, queues, relays or outcomes would lose the address.\n",
                        counted(plan.others, "other record"));
  if (plan.suppressions > 0)
    text +=
        "Its suppression would be forgotten too: a message that is asked for later is sent. The application must ask for none.\n";
  if (plan.accounts > 0)
    text += fmt::format(
        "{} this address. Accounts are the application's: delete the row, and its tokens go with it.\n",
        counted(plan.accounts, "account") + (plan.accounts == 1 ? " has" : " have"));
  return text;
}

std::string forget_json(const messages::ForgetPlan& plan, const std::optional<messages::Forgotten>& done) {
  nlohmann::ordered_json object{{"messages", plan.messages},
                                {"shared", plan.shared},
                                {"waiting", plan.waiting},
                                {"named", plan.named},
                                {"kept", plan.kept},
                                {"deliveries", plan.deliveries},
                                {"others", plan.others},
                                {"accounts", plan.accounts},
                                {"suppressions", plan.suppressions},
                                {"carried_out", done.has_value()},
                                {"cancelled", nullptr},
                                {"sending", nullptr}};
  if (done) {
    object["cancelled"] = done->cancelled;
    object["sending"] = done->sending;
  }
  return json_text(object) + "\n";
}

std::string done_text(const messages::Forgotten& done) {
  auto text = fmt::format("done: {} and {} forgotten, {} cancelled", counted(done.messages, "message"),
                          counted(done.deliveries, "delivery record"), done.cancelled);
  if (done.named > 0) text += fmt::format(", and removed from {} to others", counted(done.named, "message"));
  return text + "\n";
}

/// Throws Error(unusable) while something still has, or will have, the address.
void require_end(std::int64_t sending, std::int64_t kept) {
  if (sending > 0) {
    throw Error(ExitCode::unusable,
                fmt::format("{} leaving just now, and the record of that will have the address",
                            counted(sending, "mail") + (sending == 1 ? " is" : "s are")),
                "run the command again in a moment");
  }
  if (kept > 0) {
    throw Error(ExitCode::unusable,
                fmt::format("{} the address until {} sent",
                            counted(kept, "message") + (kept == 1 ? " keeps" : " keep"),
                            kept == 1 ? "it is" : "they are"),
                "run the command again then; mailroom message list shows what is scheduled or deferred");
  }
}

}  // namespace

ExitCode message_forget(const MessageOptions& options, Context& context) {
  const auto request = request_of(options);
  const auto connection = context.connect_to_schema("message");
  const auto waits = context.watch_waits(*connection, "message");
  const auto plan = messages::plan_forgetting(*connection, request);
  const bool json = context.global().output == OutputFormat::json;
  if (!json) context.say(render_plan(plan, request));
  if (options.dry_run || plan.empty()) {
    context.print(json              ? forget_json(plan, std::nullopt)
                  : options.dry_run ? "dry run: nothing was changed\n"
                                    : "nothing to do\n");
    if (!options.dry_run) require_end(0, plan.kept);
    return ExitCode::done;
  }
  confirm(context, "remove it?");
  const auto done =
      messages::forget(*connection, request, queue::operator_author(*connection, options.reason));
  context.print(json ? forget_json(plan, done) : done_text(done));
  require_end(done.sending, done.kept);
  return ExitCode::done;
}

}  // namespace mailroom::cmd
