// Delivers an example over one connection, under a new Message-ID each time.

#include "cmd/send/send_trial.hpp"

#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <random>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "carriers/carriers.hpp"
#include "cmd/send/send_setup.hpp"
#include "cmd/template/example_mail.hpp"
#include "delivery/dispatcher.hpp"

namespace mailroom {
namespace {

constexpr std::chrono::minutes patience{5};

Address recipient_of(const SendTrial& trial) {
  auto address = parse_address(trial.to);
  if (const auto* refusal = std::get_if<Refusal>(&address)) {
    throw Error(ExitCode::usage,
                fmt::format("--to is '{}', which cannot be mailed: {}", trial.to, refusal->reason),
                "for example --to me@app.example");
  }
  return std::get<Address>(std::move(address));
}

Answer deliver(const Settings& settings, const WrittenMail& mail, Log& log) {
  auto single = settings;
  single.send.connections = 1;
  Dispatcher dispatcher(mail_carrier().make({single, log}), {.in_flight = 1});
  dispatcher.submit({.body = mail.message, .envelope = mail.envelope});
  if (!dispatcher.wait(steady_now() + patience)) dispatcher.cancel();
  return dispatcher.take().back().answer;
}

std::string outcome_json(const SendTrial& trial, const Answer& delivery) {
  nlohmann::ordered_json object{{"to", trial.to},
                                {"outcome", verdict_name(delivery.verdict)},
                                {"relay", delivery.sink},
                                {"code", nullptr},
                                {"reply", delivery.reply}};
  if (delivery.code != 0) object["code"] = delivery.code;
  return json_text(object) + "\n";
}

/// `250 2.0.0 Ok: queued as 4Z1`
std::string reply_of(const Answer& delivery) {
  const auto code = delivery.code == 0 ? std::string() : fmt::format("{} ", delivery.code);
  return code + shown_text(delivery.reply);
}

}  // namespace

ExitCode run_send_trial(const SendTrial& trial, Context& context) {
  const auto to = recipient_of(trial);
  const auto& settings = context.settings();
  require_send_keys(settings);
  const auto writer = configured_writer(settings);
  const auto now = std::chrono::floor<Moment::duration>(std::chrono::system_clock::now());
  // The id is new each time: mailboxes drop a second mail with the same Message-ID.
  std::random_device random;
  const auto key = fmt::format("{:08x}{:08x}", random(), random());
  const MailValues trial_mail{.queue = settings.collect.queues.front(),
                              .key = key,
                              .id = now.time_since_epoch().count(),
                              .values = example_mail(trial.action, trial.account, now, context)};
  auto mail = writer->write(trial_mail, to);
  if (const auto* refusal = std::get_if<Refusal>(&mail)) {
    throw Error(ExitCode::unusable, "the mail cannot be written: " + refusal->reason,
                "the value is from the database; mailroom audit shows the account");
  }
  context.log().warn("the token is an example and does not verify");
  const auto delivery = deliver(settings, std::get<WrittenMail>(mail), context.log());
  if (context.global().output == OutputFormat::json) context.print(outcome_json(trial, delivery));
  if (delivery.verdict != Verdict::accepted) {
    throw Error(ExitCode::failed,
                fmt::format("{} has not accepted the mail ({}): {}", delivery.sink,
                            verdict_name(delivery.verdict), reply_of(delivery)),
                "mailroom doctor checks the relay");
  }
  if (context.global().output == OutputFormat::text)
    context.print(fmt::format("accepted by {}: {}\n", delivery.sink, reply_of(delivery)));
  return ExitCode::done;
}

}  // namespace mailroom
