// mailroom send: mails due tokens through SMTP relays or a provider, and records what became of each mail.

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "base/clock.hpp"
#include "carriers/capture/carrier.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "cmd/collect/consumer_run.hpp"
#include "cmd/command.hpp"
#include "cmd/send/send_capture.hpp"
#include "cmd/send/send_setup.hpp"
#include "cmd/template/template_serve.hpp"
#include "compose/mail_composer.hpp"

namespace mailroom::cmd {
namespace {

struct SendOptions {
  consumer::CollectorLimits limits;
  std::optional<Milliseconds> wait;
  SendTrial trial;
  bool dry_run = false;
  CaptureOptions capture;
};

/// Sends all mails by `relay`, as fast as it takes them.
void replace_relays(std::vector<config::RelayPath>& lanes, const config::RelayTarget& relay) {
  for (auto& lane : lanes) {
    lane.targets = {relay};
    lane.rate.reset();
  }
}

/// send.batch_limit; or by itself two requests, if a provider takes many mails in one.
int batch_limit(const config::Settings& settings, const std::vector<delivery::DeliverySink::Way>& ways) {
  const bool is_given =
      config::setting_of(settings, "send.batch_limit").origin.kind != config::OriginKind::default_value;
  int together = 1;
  for (const auto& way : ways)
    together = std::max(together, way.together);
  return is_given || together == 1 ? settings.send.batch_limit : 2 * together;
}

delivery::DeliverySink::Options sink_options(const config::Settings& settings, int batch_limit) {
  return {.dispatch = {.in_flight = settings.send.path.connections,
                       .probe_time = settings.send.path.timeout + smtp::RelayOptions{}.end_timeout},
          .messages = batch_limit,
          .policy = delivery_policy(settings),
          .words = {.side = "relay", .item = "mail", .messages = "mails"}};
}

/// `relay` replaces those of the settings, if there is one.
ConsumerSetup make_setup(const config::Settings& settings, const std::optional<config::RelayTarget>& relay,
                         const ConsumerParts& parts, Log& log) {
  auto setup = consumer_setup(settings);
  if (!relay) require_send_keys(settings);
  const auto profiles = configured_profiles(settings);
  auto lanes = lanes_of(settings);
  if (relay) replace_relays(lanes, *relay);
  setup.captures = std::ranges::any_of(lanes, capture::captures);
  for (const auto& warning : profiles->warnings())
    log.warn("a template is probably wrong", {{"what", warning}});
  setup.has_link = has_link(settings);
  tell_of_missing_link(settings, log);
  tell_of_redirection(settings, log);
  setup.session.program = "mailroom send";
  setup.session.detail.reads_newer = settings.send.supersede;
  setup.session.detail.per_recipient = settings.send.per_recipient;
  setup.session.detail.reads_raw = true;
  setup.session.detail.takes_turns = !settings.profiles.empty();
  const auto compose = [profiles, target = setup.session.conninfo, &watcher = parts.watcher] {
    const auto connect = [target, &watcher] {
      return process::connect_until_stopped(watcher.signal(), target, "mailroom send");
    };
    return std::make_unique<compose::MailComposer>(
        profiles, std::make_unique<compose::AttachmentReader>(connect, &watcher));
  };
  std::vector<delivery::DeliverySink::Way> ways;
  std::ranges::transform(lanes, std::back_inserter(ways), way_of);
  const int most = batch_limit(settings, ways);
  setup.collector.make_sink =
      sink_maker({std::move(ways), compose, sink_options(settings, most)}, parts, log);
  setup.collector.turns.batcher = {
      .batch_timeout = Milliseconds(0), .poll_interval = settings.collect.poll_interval, .line_limit = most};
  // A relay is slower than notifications are.
  setup.collector.notify_always = true;
  return setup;
}

ExitCode run_send(SendOptions options, Context& context) {
  if (options.dry_run) return run_send_preview(context);
  if (!options.trial.to.empty()) return run_send_trial(options.trial, context);
  options.limits.wait_for_database = options.wait.value_or(Milliseconds{0});
  std::optional<Capture> capture;
  if (options.capture.directory) capture.emplace(options.capture, context);
  const auto make = [&, relay = capture ? std::optional(capture->relay()) : std::nullopt](
                        const config::Settings& settings, const ConsumerParts& parts) {
    auto setup = make_setup(settings, relay, parts, context.log());
    if (options.capture.anyway) setup.captures = false;
    return setup;
  };
  const auto code =
      run_consumer(context, {.command = "send", .delivers = true, .reader = "the answers of the relay"},
                   options.limits, make);
  if (capture && options.limits.once) capture->wait_for_reader();
  return code;
}

void add_capture(CommandSyntax& syntax, CaptureOptions& options, const std::vector<Option>& others) {
  auto capture =
      syntax
          .text("--capture [DIR]", options.directory,
                "for development: keep mails in the maildir DIR, or show them in a page, and send none")
          .value_optional(std::string(capture_in_page));
  syntax
      .text("--listen ADDRESS", options.listen,
            fmt::format("with --capture: show the mails in a page at this address [{}]",
                        default_preview_address))
      .needs(capture);
  syntax
      .flag("--capture-anyway", options.anyway,
            "with --capture: also from a database from which mails have been sent")
      .needs(capture);
  for (const auto& other : others)
    capture.excludes(other);
}

Run add_send(CommandSyntax& syntax) {
  auto options = std::make_shared<SendOptions>();
  auto once = syntax.flag("--once", options->limits.once, "mail all due tokens, then stop");
  syntax.number<std::int64_t>("--max-batches N", options->limits.max_batches, {1, 1'000'000'000},
                              "stop after N batches");
  syntax.duration("--wait DURATION", options->wait, {Milliseconds{0}, std::chrono::hours(24)},
                  "keep trying to reach the database at startup for this long");
  auto to = syntax.text("--to ADDRESS", options->trial.to, "send one mail to ADDRESS for trial, and stop");
  auto of_trial = add_example_options(syntax, options->trial.mail, "with --to: ");
  of_trial.push_back(add_profile_option(syntax, options->trial.mail, "with --to: "));
  auto named =
      syntax.text("--template NAME", options->trial.mail.template_name,
                  fmt::format("with --to: the template of the mail [{}]", templates::default_template));
  auto dry_run =
      syntax.flag("--dry-run", options->dry_run, "show what would be mailed now, and to whom; mail nothing");
  add_capture(syntax, options->capture, {to, dry_run});
  for (auto option : of_trial)
    option.needs(to);
  named.needs(to);
  to.excludes(once);
  dry_run.excludes(once);
  dry_run.excludes(to);
  return [options](Context& context) { return run_send(*options, context); };
}

}  // namespace

const Command send_command{
    "send",
    "mail what is due through an SMTP relay, Amazon SES or Resend, and record what became of each mail",
    "Examples:\n"
    "  mailroom send                                      mail tokens until stopped\n"
    "  mailroom send --dry-run                            show what would be mailed\n"
    "  mailroom send --to me@app.example --account user1  mail one for trial\n",
    add_send,
    "Claims due tokens like collect, writes the mail of each, with a signed link if its action has one, and delivers "
    "it by SMTP, or over HTTPS to Amazon SES or Resend. The relay's answer decides: an accepted token is done, a deferred one is tried again after 15 s, 30 s, 1, "
    "2 and then every 4 minutes while its link works, a rejected one is a dead letter. A refusal of the sender, the login "
    "or EHLO, or of one mail after another, is no mail's fault: the relay is unavailable then. Each outcome is recorded in "
    "mailroom_deliveries with the relay's words, in the transaction that claims the next batch.\n\n"
    "Only mails with a link need send.link. Without it send does not start while such mails wait; those that come "
    "later are deferred until it is set, and all others go out.\n\n"
    "Where the connection ends after a mail and before its answer, nobody knows whether the relay has it. "
    "send.when_unknown says what follows: resend sends it once more, with the same Message-ID; hold does not. A crash "
    "sends at most send.batch_limit mails twice. Resend recognises a request that it has: mailed once.\n\n"
    "A message may name a profile of the configuration, with a sender, a link, templates, relays and a rate of its own. "
    "Where relays of one profile are down or slow, the mails of the others go on. A message of a profile that is not "
    "configured is deferred until it is.\n\n"
    "While the relay is unavailable, mails wait in the queue and no attempt is counted. The relay is probed after 1 s, "
    "then less often, up to every 30 s. TLS is required, except on this host without a user; a certificate must be valid "
    "for the name of the relay.\n\n"
    "SIGTERM and SIGINT finish the mails in progress, for up to 5 s, and give the others back to the queue. SIGHUP "
    "reloads the configuration, the templates and the keys; a service whose password is among its credentials must be "
    "restarted for a new one. --to sends one mail for trial: it claims nothing, and its "
    "token does not verify.\n\n"
    "--capture is a trial run for development. It takes what is due, writes the mails as a relay would get them, and "
    "keeps them: in the maildir DIR, below lines with the envelope, or, without DIR, in a page whose address it prints, until "
    "it ends. It needs no relay. For the database the mails are accepted, by `capture`. It refuses, with exit status 7, a database from "
    "which mails have been sent or tokens handed over, unless --capture-anyway is given."};

}  // namespace mailroom::cmd
