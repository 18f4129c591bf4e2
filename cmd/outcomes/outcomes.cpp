// mailroom outcomes: tells an application what became of its mails, by a program or a server that
// acknowledges it.

#include <fmt/format.h>
#include <random>

#include "base/wording.hpp"
#include "carriers/carriers.hpp"
#include "cmd/command.hpp"
#include "cmd/terminal/context.hpp"
#include "feed/outcome_feed.hpp"
#include "process/environment.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::chrono::seconds pause_without_work{1};

struct OutcomesOptions {
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

std::unique_ptr<feed::OutcomeFeed> make_feed(const config::Settings& settings, Log& log) {
  std::random_device random;
  return std::make_unique<feed::OutcomeFeed>(
      carriers::configured_carrier(settings).make({settings, log, random()}),
      delivery::Dispatcher::Options{
          .in_flight = settings.sink.in_flight, .probe_time = settings.sink.timeout, .seed = random()},
      log);
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
  const auto feed = make_feed(context.settings(), context.log());
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
    "for good is dropped, with a warning.\n\n"
    "Outcomes are kept from the first start of this command on, also while it does not run, until --off. One process works at a "
    "time; a second one waits to take over. SIGTERM and SIGINT stop it once what is under way is answered."};

}  // namespace mailroom::cmd
