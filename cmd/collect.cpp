#include "base/duration.hpp"
#include "cmd/commands.hpp"
#include "db/conninfo.hpp"
#include "queue/collector.hpp"
#include "queue/pg_queue_session.hpp"
#include "schema/bookkeeping.hpp"

namespace mailroom {
namespace {

struct CollectOptions {
  bool once = false;
  std::int64_t max_batches = 0;
  std::string wait;
};

SessionFactory session_factory(const Settings& settings) {
  return [url = settings.database_url, queue = settings.queue, channel = settings.channel] {
    return std::make_unique<PgQueueSession>(url, queue, channel, require_current_schema);
  };
}

CollectorSetup make_setup(const Settings& settings, OutputFormat output) {
  const bool jsonl = settings.format == CollectFormat::jsonl || output == OutputFormat::json;
  return {
      .connect = session_factory(settings),
      .session_identity = settings.database_url + '\n' + settings.queue + '\n' + settings.channel,
      .key = load_key_ring(settings).current,
      .make_encoder =
          [jsonl, queue = settings.queue] { return jsonl ? make_jsonl_encoder(queue) : make_csv_encoder(); },
      .batch_limit = settings.batch_limit,
      .lines_per_claim = settings.lines_per_claim,
      .batcher = {.batch_timeout = settings.batch_timeout, .poll_interval = settings.poll_interval},
      .notify_always = settings.notify == NotifyWhen::always,
      .healthcheck_interval = settings.healthcheck_interval};
}

CollectorLimits make_limits(const CollectOptions& options) {
  CollectorLimits limits{.once = options.once};
  if (options.max_batches > 0) limits.max_batches = options.max_batches;
  if (!options.wait.empty()) {
    const auto wait = parse_duration(options.wait);
    if (!wait) {
      throw Error(ExitCode::usage, "--wait is '" + options.wait + "', and must be a duration",
                  "for example 30s, 4m30s or 250ms");
    }
    limits.wait_for_database = *wait;
  }
  return limits;
}

void log_configuration(Log& log, const Settings& settings) {
  log.info("configured", {{"queue", settings.queue},
                          {"channel", settings.channel},
                          {"limit", settings.batch_limit},
                          {"timeout", format_duration(settings.batch_timeout)},
                          {"healthcheck_interval", format_duration(settings.healthcheck_interval)}});
  log.info("connecting", {{"to", describe_target(settings.database_url)}});
}

ExitCode run_collect(const CollectOptions& options, Context& context) {
  const auto limits = make_limits(options);
  const auto& settings = context.settings();
  auto setup = make_setup(settings, context.global().output);
  context.warn_of_visible_password();
  log_configuration(context.log(), settings);
  StopSignal signal;
  SystemSurroundings surroundings(signal, context.out());
  const auto reload = [&context] { return make_setup(context.load(), context.global().output); };
  Collector collector(std::move(setup), limits, reload, surroundings, context.out(), context.log());
  context.explain_unreachable([&] { collector.run(); });
  context.log().info("stopped");
  return ExitCode::done;
}

Run add_collect(CLI::App& app, Overrides& overrides) {
  auto options = std::make_shared<CollectOptions>();
  app.add_flag("--once", options->once, "hand on all that is due, then stop");
  app.add_option("--max-batches", options->max_batches, "stop after so many batches")
      ->check(whole_number(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->option_text("N");
  app.add_option("--wait", options->wait, "keep trying so long to reach the database at the start")
      ->option_text("DURATION");
  add_setting(app, overrides, "--batch-limit", "collect.batch_limit", "tokens a batch at the most [10]")
      ->option_text("N");
  add_setting(app, overrides, "--lines-per-claim", "collect.lines_per_claim",
              "lines that are claimed at a time [1]")
      ->option_text("N");
  add_setting(app, overrides, "--batch-timeout", "collect.batch_timeout",
              "how long a token waits for its batch to fill [5s]")
      ->option_text("DURATION");
  add_setting(app, overrides, "--format", "collect.format", "csv or jsonl [csv]")->option_text("FORMAT");
  add_setting(app, overrides, "--queue", "collect.queue", "the queue, a row of jobs [mailroom]")
      ->option_text("NAME");
  add_setting(app, overrides, "--channel", "collect.channel", "where notifications come [token_insert]")
      ->option_text("NAME");
  add_setting(app, overrides, "--poll-interval", "collect.poll_interval",
              "how often to look without a notification [1s]")
      ->option_text("DURATION");
  add_setting(app, overrides, "--notify", "collect.notify",
              "when inserts notify: when_asleep, always [when_asleep]")
      ->option_text("WHEN");
  add_setting(app, overrides, "--healthcheck-interval", "collect.healthcheck_interval",
              "how long the connection may be silent [4m30s]")
      ->option_text("DURATION");
  add_setting(app, overrides, "--key-file", "signing.key_file",
              "file with the signing key, 64 hexadecimal digits")
      ->option_text("FILE");
  return [options](Context& context) { return run_collect(*options, context); };
}

}  // namespace

const Command collect_command{
    "collect", "write batches of signed tokens to stdout until stopped",
    "Examples:\n"
    "  mailroom collect                              one line a batch, as CSV\n"
    "  mailroom collect --batch-limit 100 --batch-timeout 500ms\n"
    "  mailroom collect --once --format jsonl        drain what is due, then stop\n",
    add_collect,
    "Waits for tokens, claims those that are due in batches, signs each one, and writes one line a "
    "batch to standard output until it is stopped. A full batch goes out at once; a smaller one when "
    "its oldest token has waited for the batch timeout, and at the start and after a reconnect at "
    "once. A batch is acknowledged only after its line is written: a crash repeats at most the batch "
    "in flight, and nothing that is committed is passed by. Any number of collectors may work on the "
    "same queue, each batch going to one of them. With --lines-per-claim N one claim takes up to N full "
    "lines, for short lines at a high rate; a crash then repeats up to N.\n\n"
    "A line of CSV holds action,email,login,token,code for each token, action 1 for activation and 2 "
    "for password recovery, quoted as RFC 4180 says. With --format jsonl it is one JSON object: the "
    "batch and its tokens. A reader ignores a last line without a newline. What is expired, consumed, "
    "or of an account in the wrong status is passed over and counted.\n\n"
    "SIGTERM and SIGINT finish and acknowledge the batch in hand, and the exit status is 0; a second "
    "one stops hard. SIGHUP reads file and keys anew. A lost connection is made again, with growing "
    "pauses of one second at the most. Log lines go to standard error."};

}  // namespace mailroom
