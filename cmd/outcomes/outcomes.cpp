// mailroom outcomes: tells an application what became of its mails, by a program or a server that
// acknowledges it.

#include <fmt/format.h>
#include <random>

#include "base/json.hpp"
#include "base/wording.hpp"
#include "carriers/carriers.hpp"
#include "cmd/command.hpp"
#include "cmd/terminal/context.hpp"
#include "feed/outcome_feed.hpp"
#include "mail/configured_mail.hpp"
#include "process/environment.hpp"
#include "process/stop_signal.hpp"
#include "resend_api/outcome_event.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::chrono::seconds pause_without_work{1};

enum class Format { jsonl, resend };

struct OutcomesOptions {
  Format format = Format::jsonl;
  bool once = false;
  bool off = false;
};

/// The sink of collect is for tokens: what hands outcomes over is named on the command line.
void require_sink(const config::Settings& settings) {
  for (const auto* key : {"sink.exec", "sink.to"}) {
    if (config::setting_of(settings, key).origin.kind == config::OriginKind::flag) return;
  }
  throw Error(ExitCode::usage, "nothing is named that outcomes are handed over to",
              "mailroom outcomes --exec PROGRAM, or --to URL");
}

/// Events go where Resend would post them to.
void require_webhook(const config::Settings& settings) {
  if (carriers::configured_carrier(settings).name == "http") return;
  throw Error(ExitCode::usage, "--format resend posts events to a server",
              "mailroom outcomes --format resend --to https://app.example/webhooks");
}

/// Of a mail that names none.
std::string sender_of(const config::Settings& settings) {
  const auto from = mail::parse_configured_mail(settings).from;
  return from ? from->address.text() : std::string();
}

feed::OutcomeForm resend_events(std::string from) {
  return {
      .is_event = true,
      .tell = [from = std::move(from)](const feed::KeptOutcome& outcome) -> std::optional<feed::ToldOutcome> {
        if (outcome.line.empty()) return std::nullopt;
        auto event = resend_api::outcome_event(parse_json(outcome.line), from);
        if (!event) return std::nullopt;
        return feed::ToldOutcome{std::move(event->id), std::move(event->body)};
      },
      .drops_refused = false};
}

std::unique_ptr<feed::OutcomeFeed> make_feed(const config::Settings& settings, Format format, Log& log) {
  std::random_device random;
  const bool is_resend = format == Format::resend;
  if (is_resend) require_webhook(settings);
  return std::make_unique<feed::OutcomeFeed>(
      carriers::configured_carrier(settings).make({settings, log, random(), is_resend}),
      delivery::Dispatcher::Options{
          .in_flight = settings.sink.in_flight, .probe_time = settings.sink.timeout, .seed = random()},
      is_resend ? resend_events(sender_of(settings)) : feed::outcome_lines(), log);
}

/// Works on one session until it is stopped, or, with `once`, until nothing is due.
void work(feed::OutcomeFeed& feed, db::Connection& connection, bool once, process::StopSignal& stop,
          Context& context) {
  feed::KeptOutcomes kept(connection);
  bool waits = false;
  while (!kept.take_over()) {
    if (!std::exchange(waits, true))
      context.log().info("another process hands outcomes over; this one takes over when that ends");
    if (once)
      throw Error(ExitCode::locked, "another process hands outcomes over", "it does what this one would");
    stop.sleep_for(pause_without_work);
    if (stop.requested()) return;
  }
  context.log().info("connected");
  while (!stop.requested()) {
    if (feed.round(kept) > 0) continue;
    if (once) {
      if (feed.time_to_admission())
        throw Error(ExitCode::database, "the receiver takes no outcomes",
                    "run the command again later, or without --once to wait");
      return;
    }
    stop.sleep_for(feed.time_to_admission().value_or(pause_without_work));
  }
}

ExitCode run_off(Context& context) {
  const auto connection = context.connect_to_schema("outcomes");
  confirm(context, "keep no outcomes any more, and remove those that nobody was told of?");
  const auto removed = feed::KeptOutcomes::end(*connection);
  context.print(fmt::format("done: {} removed\n", counted(removed, "outcome")));
  return ExitCode::done;
}

ExitCode run_outcomes(const OutcomesOptions& options, Context& context) {
  if (options.off) return run_off(context);
  require_sink(context.settings());
  process::StopSignal stop;
  const auto feed = make_feed(context.settings(), options.format, context.log());
  bool has_begun = false;
  while (!stop.requested()) {
    try {
      const auto connection =
          has_begun ? context.connect("outcomes", &stop) : context.connect_to_schema("outcomes");
      has_begun = true;
      work(*feed, *connection, options.once, stop, context);
      return ExitCode::done;
    } catch (const db::ConnectionLost& error) {
      if (!has_begun || options.once) throw;
      context.log().warn("connection lost", {{"reason", error.what()}});
      stop.sleep_for(pause_without_work);
    }
  }
  return ExitCode::done;
}

Run add_outcomes(CommandSyntax& syntax) {
  auto options = std::make_shared<OutcomesOptions>();
  syntax.choice("--format FORMAT", options->format, {{"jsonl", Format::jsonl}, {"resend", Format::resend}},
                "jsonl or resend", "jsonl (default), or resend: events of Resend's webhooks, to a server");
  auto once = syntax.flag("--once", options->once, "hand over what is kept, then stop");
  syntax.flag("--off", options->off, "keep no outcomes any more, and remove those that are kept")
      .excludes(once);
  return [options](Context& context) { return run_outcomes(*options, context); };
}

}  // namespace

const Command outcomes_command{
    "outcomes", "tell an application what became of its mails",
    "Examples:\n"
    "  mailroom outcomes --exec ./outcomes.py                hand over until stopped\n"
    "  mailroom outcomes --to https://app.example/outcomes   to a server\n"
    "  mailroom outcomes --off                               keep none any more\n",
    add_outcomes,
    "Hands every final outcome of a mail, or of a token that was handed over, to a program or a server, as a line of JSON, at "
    "least once: accepted, rejected, expired, cancelled, replaced or unknown. The protocol is that of collect --exec and --to. An "
    "outcome is removed when it was acknowledged; one that is put off comes again after 15 s, then later; one that is refused "
    "for good is dropped, with a warning. With --format resend a server gets events as Resend's "
    "webhooks have them, and only 2xx ends one.\n\n"
    "Outcomes are kept from the first start of this command on, also while it does not run, until --off. One process works at a "
    "time; a second one waits to take over. SIGTERM and SIGINT stop it once what is under way is answered."};

}  // namespace mailroom::cmd
