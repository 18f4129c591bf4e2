// Shows the first hundred mails, and the reason of each that would not be sent.

#include "cmd/send/send_preview.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cmd/send/send_setup.hpp"
#include "cmd/terminal/text_table.hpp"
#include "compose/waiting_mails.hpp"

namespace mailroom {
namespace {

constexpr int most_shown = 100;

std::string action_of(const WaitingMail& mail) {
  return mail.action == Action::activation ? "activation" : "recovery";
}

std::string reason_of(const WaitingMail& mail) {
  return fmt::format("({}: {})", delivery_state_name(mail.not_mailed->state), mail.not_mailed->reply);
}

std::string preview_text(const WaitingMails& mails, std::size_t width) {
  TextTable table({{.title = "token", .align = TextTable::Align::right}, {"action"}, {"to"}, {"subject"}});
  for (const auto& mail : mails.first) {
    table.add({fmt::format("{}", mail.token), action_of(mail), shown_text(mail.email),
               shown_text(mail.not_mailed ? reason_of(mail) : mail.subject)});
  }
  return table.empty() ? std::string() : table.render(width);
}

std::string preview_json(const WaitingMail& mail) {
  nlohmann::ordered_json object{{"token", mail.token}, {"action", action_of(mail)}, {"email", mail.email},
                                {"subject", nullptr},  {"outcome", nullptr},        {"reason", nullptr}};
  if (mail.not_mailed) {
    object["outcome"] = delivery_state_name(mail.not_mailed->state);
    object["reason"] = mail.not_mailed->reply;
  } else {
    object["subject"] = mail.subject;
  }
  return json_text(object) + "\n";
}

std::string summary_of(const WaitingMails& mails) {
  const auto mailed = std::count_if(mails.first.begin(), mails.first.end(),
                                    [](const auto& mail) { return !mail.not_mailed; });
  const auto listed = static_cast<std::int64_t>(mails.first.size());
  if (mails.total > listed) {
    return fmt::format("{} wait; these are the first {}, of which {} would be mailed\n",
                       counted(mails.total, "token"), listed, mailed);
  }
  return fmt::format("{} would be mailed; {} would not\n", counted(mailed, "token"), listed - mailed);
}

}  // namespace

ExitCode run_send_preview(Context& context) {
  const auto& settings = context.settings();
  const auto writer = configured_writer(settings);
  const auto connection = context.connect_to_schema("send");
  const auto mails =
      read_waiting_mails(*connection, only_queue(settings), *writer, delivery_policy(settings), most_shown);
  if (context.global().output == OutputFormat::json) {
    for (const auto& mail : mails.first)
      context.print(preview_json(mail));
  } else {
    context.print(preview_text(mails, context.out().width()));
    context.say(summary_of(mails));
  }
  return ExitCode::done;
}

}  // namespace mailroom
