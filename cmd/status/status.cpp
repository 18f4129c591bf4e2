// mailroom status: what waits in the queues, and what blocks them, with a fix for each problem.

#include <fmt/format.h>

#include "base/clock.hpp"
#include "cmd/command.hpp"
#include "cmd/status/status_sizes.hpp"
#include "cmd/status/status_watch.hpp"
#include "metrics/database_metrics.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {
namespace {

/// How to print the status; `global` is what the global option says.
enum class StatusFormat { global, text, json, prometheus };

struct StatusOptions {
  StatusFormat format = StatusFormat::global;
  std::optional<Milliseconds> watch;
  health::HealthLimits limits;
  bool sizes = false;
};

/// Prints also that the database cannot be read, or which schema does not fit, before it throws why.
ExitCode print_metrics(const StatusRequest& request, Context& context) {
  metrics::DatabaseReading reading;
  try {
    const auto connection = context.connect("status");
    reading = metrics::read_database(
        *connection, [&](db::Connection& schema) { return status::shown_queues(schema, request.settings); },
        request.limits);
  } catch (const Error& error) {
    reading.error = error.what();
    context.print(metrics::exposition_text(metrics::database_metrics(reading).all()));
    throw;
  }
  context.print(metrics::exposition_text(metrics::database_metrics(reading).all()));
  if (reading.schema_error) throw Error(*reading.schema_error);
  return ExitCode::done;
}

ExitCode run_status(const StatusOptions& options, Context& context) {
  const auto& settings = context.settings();
  StatusRequest request{.settings = settings, .limits = options.limits};
  request.limits.collector_silence = health::silence_limit(settings.collect.poll_interval);
  request.limits.send_connections = settings.send.path.connections;
  request.json = options.format == StatusFormat::json ||
                 (options.format == StatusFormat::global && context.global().output == OutputFormat::json);
  if (options.format == StatusFormat::prometheus) {
    if (!options.watch) return print_metrics(request, context);
    throw Error(ExitCode::usage, "--watch cannot be combined with --output prometheus",
                "run it from a timer; each run prints the metrics once");
  }
  if (options.sizes) return run_sizes(request.json, context);
  if (options.watch) return watch_status(request, *options.watch, context);

  const auto connection = context.connect_to_schema("status", schema::tables_of_consumers());
  const auto overview = read_overview(*connection, request);
  context.print(request.json ? render_json(overview)
                             : render_text(overview, {.colour = context.colour_on(context.out()),
                                                      .width = context.out().width()}));
  return judge(overview);
}

Run add_status(CommandSyntax& syntax) {
  auto options = std::make_shared<StatusOptions>();
  const config::Choices<StatusFormat> formats{
      {"text", StatusFormat::text}, {"json", StatusFormat::json}, {"prometheus", StatusFormat::prometheus}};
  syntax.choice("-o,--output FORMAT", options->format, formats, "text, json or prometheus",
                "print text, json or, for Prometheus' node_exporter, prometheus");
  const auto sizes = syntax.flag("--sizes", options->sizes,
                                 "show what the tables take, how fast they grow, and what prune would free");
  auto watch = syntax
                   .duration("--watch [INTERVAL]", options->watch, {Milliseconds{100}, std::chrono::hours(1)},
                             "refresh every INTERVAL until stopped [2s]")
                   .value_optional("2s");
  watch.excludes(sizes);
  syntax.duration("--max-lag DURATION", options->limits.max_lag,
                  {Milliseconds{0}, std::chrono::hours(24 * 365)},
                  "fail when the oldest token has waited longer");
  syntax.number<std::int64_t>("--max-pending N", options->limits.max_pending, {0},
                              "fail when more than N tokens wait");
  return [options](Context& context) { return run_status(*options, context); };
}

}  // namespace

const Command status_command{
    "status", "show queue status, and what blocks the queue",
    "Examples:\n"
    "  mailroom status --watch                           report and trends every 2 s\n"
    "  mailroom status --max-lag 1m --max-pending 5000   for alerting: exit code 8\n"
    "  mailroom status -o prometheus                     metrics of the database\n"
    "\n"
    "Failures, exit code 8, are mail that does not reach people: tokens wait, and the\n"
    "queue is paused or was dropped, no collector that serves it is connected, or\n"
    "none works; for 1 min nothing was accepted, since the relay is down, refuses 10\n"
    "or defers 3, or since 10 accounts were unfit; mails wait for the configuration;\n"
    "within 10 min 3 mails could not be made for one reason, or tokens expired\n"
    "unsent, or tokens will expire before the rate can mail them; a collector has\n"
    "held a batch for more than 30 s; collectors sign with different keys; the\n"
    "queue's lock is held, or a standby awaited, for more than 10 s; the server's\n"
    "queue of notifications is half full; scheduled messages are overdue; messages or\n"
    "accounts of the last day have no token; a sequence is behind its table or the\n"
    "cursor; a trigger does not fire without which tokens are lost; the database is a\n"
    "copy, or tokens wait in another schema; a limit is exceeded.\n"
    "Warnings, exit code 0: a batch was dead-lettered, and its tokens were not sent\n"
    "again; a gap waits for a transaction for more than 1 min, which delays only its\n"
    "own tokens; unused links of the last hour have a key that no collector has;\n"
    "tokens expired unsent, or mails could not be made, within 1 h; mails of the last\n"
    "hour may have been taken twice, or 5 % of them, and 10, were rejected; a consumer\n"
    "is connected from a host that may not serve the database; a session that is no\n"
    "collector holds a lock of mailroom; the server is a standby; the database went\n"
    "back to an older state within 1 d; and a failure above that is shorter, or for\n"
    "which no token waits. ~ marks an estimate.\n"
    "--watch reports an outage and keeps trying. Ages count deferred tokens.\n"
    "\n"
    "Without --queue and collect.queue, several queues are shown in a table;\n"
    "--queue NAME shows one in detail. --max-lag and --max-pending hold for each.\n",
    add_status,
    "Shows the cursor, how many tokens wait and for how long, the batches in flight, the gaps that open "
    "transactions leave and the sessions that hold them open, the connected collectors and the schema "
    "version. Each problem is shown with the process that causes it and the command that fixes it."};

}  // namespace mailroom::cmd
