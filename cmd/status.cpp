#include <fmt/format.h>

#include "base/duration.hpp"
#include "cmd/commands.hpp"
#include "cmd/status_watch.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds shortest_interval{100};
constexpr Milliseconds longest_interval{3'600'000};

struct StatusOptions {
  std::optional<std::string> watch;
  std::string max_lag;
  std::optional<std::int64_t> max_pending;
};

Milliseconds duration_of(const std::string& flag, const std::string& text) {
  const auto duration = parse_duration(text);
  if (duration) return *duration;
  throw Error(ExitCode::usage, fmt::format("{} is '{}', and must be a duration", flag, text),
              "for example 30s, 4m30s or 250ms");
}

Milliseconds interval_of(const std::string& text) {
  const auto interval = duration_of("--watch", text);
  if (interval >= shortest_interval && interval <= longest_interval) return interval;
  throw Error(ExitCode::usage,
              fmt::format("--watch is '{}', and must be from {} to {}", text,
                          format_duration(shortest_interval), format_duration(longest_interval)),
              "for example 2s or 500ms; a bare number is milliseconds");
}

HealthLimits limits_of(const StatusOptions& options) {
  HealthLimits limits;
  if (!options.max_lag.empty()) limits.max_lag = duration_of("--max-lag", options.max_lag);
  limits.max_pending = options.max_pending;
  return limits;
}

ExitCode run_status(const StatusOptions& options, Context& context) {
  StatusRequest request{.queue = "", .limits = limits_of(options)};
  std::optional<Milliseconds> interval;
  if (options.watch) interval = interval_of(*options.watch);
  const auto& settings = context.settings();
  request.queue = settings.queue;
  // A collector looks for work once a poll interval, wanted or not.
  request.limits.collector_silence = std::chrono::seconds(30) + settings.poll_interval;
  if (interval) return watch_status(request, *interval, context);

  const auto connection = context.connect_to_schema("status");
  const auto report = look_at_queue(*connection, request);
  const bool json = context.global().output == OutputFormat::json;
  context.out().write(json ? render_json(report)
                           : render_text(report, {.colour = context.colour_on(context.out())}));
  return judge(report);
}

Run add_status(CLI::App& app, Overrides& overrides) {
  auto options = std::make_shared<StatusOptions>();
  app.add_option_function<std::string>(
         "--watch", [options](const std::string& text) { options->watch = text; },
         "look again and again, every INTERVAL, until stopped [2s]")
      ->expected(0, 1)
      ->default_str("2s")
      ->option_text("[INTERVAL]");
  app.add_option("--max-lag", options->max_lag, "a failure when the oldest token has waited longer")
      ->option_text("DURATION");
  app.add_option_function<std::int64_t>(
         "--max-pending", [options](const std::int64_t& count) { options->max_pending = count; },
         "a failure when more tokens wait")
      ->check(whole_number(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->option_text("N");
  add_setting(app, overrides, "--queue", "collect.queue", "the queue, a row of jobs [mailroom]");
  return [options](Context& context) { return run_status(*options, context); };
}

}  // namespace

const Command status_command{
    "status", "say how the queue stands, and who holds it up",
    "Examples:\n"
    "  mailroom status                                   one look\n"
    "  mailroom status --watch                           a look every 2 s, and trends\n"
    "  mailroom status --max-lag 1m --max-pending 5000   for alerting: exit code 8\n"
    "\n"
    "Failures, exit code 8: tokens wait and no collector is connected, or none of\n"
    "them works; a batch is with its collector for more than 30 s; the queue's lock\n"
    "is held for more than 10 s; the sequence is behind the cursor; a limit is\n"
    "exceeded. Warnings, exit code 0: a batch was set aside; a hole waits for a\n"
    "transaction for more than 1 min, which delays its own tokens alone. ~ marks an\n"
    "estimate.\n",
    add_status,
    "Shows the cursor, how many tokens wait and for how long, the batches in flight, the holes that open "
    "transactions leave and who holds them open, the collectors that are connected and the version of the "
    "schema. What is wrong is named with the process to blame and the command that mends it."};

}  // namespace mailroom
