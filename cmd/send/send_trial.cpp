// Delivers an example over one connection, under a new Message-ID each time.

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <random>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "carriers/relay_series.hpp"
#include "cmd/send/send_setup.hpp"
#include "cmd/template/template_render.hpp"
#include "cmd/terminal/text_table.hpp"
#include "compose/waiting_mails.hpp"
#include "delivery/dispatcher.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::chrono::minutes patience{5};

mail::Address recipient_of(const SendTrial& trial) {
  auto address = mail::parse_address(trial.to);
  if (const auto* refusal = std::get_if<mail::Refusal>(&address)) {
    throw Error(ExitCode::usage,
                fmt::format("--to is '{}', which cannot be mailed: {}", trial.to, refusal->reason),
                "for example --to me@app.example");
  }
  return std::get<mail::Address>(std::move(address));
}

delivery::Answer deliver(config::RelayPath path, const compose::WrittenMail& mail) {
  path.connections = 1;
  delivery::Dispatcher dispatcher(carriers::make_relays(path), {.in_flight = 1});
  dispatcher.submit({.envelope = mail.envelope}, SpooledText(mail.message));
  if (!dispatcher.wait(steady_now() + patience)) dispatcher.cancel();
  return dispatcher.take().back().answer;
}

std::string outcome_json(const SendTrial& trial, const delivery::Answer& delivery) {
  nlohmann::ordered_json object{{"to", trial.to},
                                {"outcome", delivery::verdict_name(delivery.verdict)},
                                {"sink", delivery.sink},
                                {"code", nullptr},
                                {"reply", delivery.reply}};
  if (delivery.code != 0) object["code"] = delivery.code;
  return json_text(object) + "\n";
}

/// `250 2.0.0 Ok: queued as 4Z1`
std::string reply_of(const delivery::Answer& delivery) {
  const auto code = delivery.code == 0 ? std::string() : fmt::format("{} ", delivery.code);
  return code + shown_text(delivery.reply);
}

constexpr int most_shown = 100;

std::string action_of(const compose::WaitingMail& mail) {
  return queue::short_action_name(mail.action);
}

std::string reason_of(const compose::WaitingMail& mail) {
  return fmt::format("({}: {})", fate::outcome_name(mail.not_mailed->state), mail.not_mailed->reply);
}

/// `ada@example.org`, or `dev@app.example, for ada@example.org`.
std::string recipient_of(const compose::WaitingMail& mail) {
  if (mail.redirected_to.empty()) return shown_text(mail.email);
  return fmt::format("{}, for {}", mail.redirected_to, shown_text(mail.email));
}

std::string preview_text(const compose::WaitingMails& mails, std::size_t width) {
  TextTable table({{.title = "token", .align = TextTable::Align::right}, {"action"}, {"to"}, {"subject"}});
  for (const auto& mail : mails.first) {
    table.add({fmt::format("{}", mail.token), action_of(mail), recipient_of(mail),
               shown_text(mail.not_mailed ? reason_of(mail) : mail.subject)});
  }
  return table.empty() ? std::string() : table.render(width);
}

std::string preview_json(const compose::WaitingMail& mail) {
  nlohmann::ordered_json object{
      {"token", mail.token}, {"action", action_of(mail)}, {"email", mail.email}, {"redirected_to", nullptr},
      {"subject", nullptr},  {"outcome", nullptr},        {"reason", nullptr}};
  if (!mail.redirected_to.empty()) object["redirected_to"] = mail.redirected_to;
  if (mail.not_mailed) {
    object["outcome"] = fate::outcome_name(mail.not_mailed->state);
    object["reason"] = mail.not_mailed->reply;
  } else {
    object["subject"] = mail.subject;
  }
  return json_text(object) + "\n";
}

std::string summary_of(const compose::WaitingMails& mails) {
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

ExitCode run_send_trial(const SendTrial& trial, Context& context) {
  const auto to = recipient_of(trial);
  const auto settings = config::with_profile(context.settings(), trial.mail.profile);
  require_send_keys(settings);
  const auto writer = configured_writer(settings);
  if (settings.send.link.empty()) {
    if (templates::find_builtin(trial.mail.template_name, templates::MailPart::text) != nullptr)
      config::require_keys({"send.link"}, settings);
    context.log().warn("send.link is not set; the mail has no link");
  }
  const auto now = std::chrono::floor<Moment::duration>(std::chrono::system_clock::now());
  // The id is new each time: mailboxes drop a second mail with the same Message-ID.
  std::random_device random;
  const auto key = fmt::format("{:08x}{:08x}", random(), random());
  auto draft = example_draft(trial.mail, now, context);
  draft.content.queue = settings.collect.queues.front();
  draft.content.key = key;
  draft.content.token = now.time_since_epoch().count();
  draft.content.to = {{.name = "", .address = to}};
  auto mail = writer->write(std::move(draft), to);
  if (const auto* refusal = std::get_if<mail::Refusal>(&mail))
    refuse_example(trial.mail, *refusal, writer->template_names());
  context.log().warn("the token is an example and does not verify");
  const auto delivery = deliver(settings.send.path, std::get<compose::WrittenMail>(mail));
  if (context.global().output == OutputFormat::json) context.print(outcome_json(trial, delivery));
  if (delivery.verdict != delivery::Verdict::accepted) {
    throw Error(ExitCode::failed,
                fmt::format("{} has not accepted the mail ({}): {}", delivery.sink,
                            delivery::verdict_name(delivery.verdict), reply_of(delivery)),
                "mailroom doctor checks the relay");
  }
  if (context.global().output == OutputFormat::text)
    context.print(fmt::format("accepted by {}: {}\n", delivery.sink, reply_of(delivery)));
  return ExitCode::done;
}

ExitCode run_send_preview(Context& context) {
  const auto& settings = context.settings();
  const auto profiles = configured_profiles(settings);
  const auto connection = context.connect_to_schema("send");
  const auto mails = compose::read_waiting_mails(*connection, config::only_queue(settings), *profiles,
                                                 delivery_policy(settings), most_shown);
  if (context.global().output == OutputFormat::json) {
    for (const auto& mail : mails.first)
      context.print(preview_json(mail));
  } else {
    context.print(preview_text(mails, context.out().width()));
    context.say(summary_of(mails));
  }
  return ExitCode::done;
}

}  // namespace mailroom::cmd
