#include <fmt/format.h>

#include "base/duration.hpp"
#include "cmd/commands.hpp"
#include "cmd/status/status_watch.hpp"

namespace mailroom {
namespace {

struct StatusOptions {
  std::optional<Milliseconds> watch;
  HealthLimits limits;
};

ExitCode run_status(const StatusOptions& options, Context& context) {
  const auto& settings = context.settings();
  StatusRequest request{.settings = settings, .limits = options.limits};
  request.limits.collector_silence = silence_limit(settings.poll_interval);
  if (options.watch) return watch_status(request, *options.watch, context);

  const auto connection = context.connect_to_schema("status");
  const auto overview = read_overview(*connection, request);
  const bool json = context.global().output == OutputFormat::json;
  context.print(json ? render_json(overview)
                     : render_text(overview, {.colour = context.colour_on(context.out()),
                                              .width = context.out().width()}));
  return judge(overview);
}

Run add_status(CommandSyntax& syntax) {
  auto options = std::make_shared<StatusOptions>();
  syntax
      .duration("--watch [INTERVAL]", options->watch, {Milliseconds{100}, std::chrono::hours(1)},
                "refresh every INTERVAL until stopped [2s]")
      .value_optional("2s");
  syntax.duration("--max-lag DURATION", options->limits.max_lag,
                  {Milliseconds{0}, std::chrono::hours(24 * 365)},
                  "fail when the oldest token has waited longer");
  syntax.number<std::int64_t>("--max-pending N", options->limits.max_pending, {0},
                              "fail when more than N tokens wait");
  syntax.setting("--queue NAME", "collect.queue", "show this queue in detail, or a table of several [all]");
  return [options](Context& context) { return run_status(*options, context); };
}

}  // namespace

const Command status_command{
    "status", "show queue status, and what blocks the queue",
    "Examples:\n"
    "  mailroom status                                   show one report\n"
    "  mailroom status --watch                           report and trends every 2 s\n"
    "  mailroom status --max-lag 1m --max-pending 5000   for alerting: exit code 8\n"
    "\n"
    "Failures, exit code 8: tokens wait and no collector is connected, or none of\n"
    "them works; a collector has held a batch for more than 30 s; the queue's lock\n"
    "is held for more than 10 s; the sequence is behind the cursor; a limit is\n"
    "exceeded. Warnings, exit code 0: a batch was dead-lettered; a gap waits for a\n"
    "transaction for more than 1 min, which delays only its own tokens; collectors\n"
    "sign with different keys; a queue is paused. ~ marks an estimate. --watch\n"
    "reports an outage and keeps trying.\n"
    "\n"
    "Without --queue and collect.queue, several queues are shown in a table;\n"
    "--queue NAME shows one in detail. --max-lag and --max-pending hold for each.\n",
    add_status,
    "Shows the cursor, how many tokens wait and for how long, the batches in flight, the gaps that open "
    "transactions leave and the sessions that hold them open, the connected collectors and the schema "
    "version. Each problem is shown with the process that causes it and the command that fixes it."};

}  // namespace mailroom
