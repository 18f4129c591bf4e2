// mailroom collect: batches of signed tokens on stdout, or handed over to a program or server.

#include <fmt/format.h>
#include <limits>
#include <random>

#include "base/log.hpp"
#include "base/text.hpp"
#include "carriers/carriers.hpp"
#include "carriers/line_sink.hpp"
#include "cmd/collect/consumer_run.hpp"
#include "cmd/command.hpp"
#include "compose/line_composer.hpp"

namespace mailroom::cmd {
namespace {

struct CollectOptions {
  bool once = false;
  std::optional<std::int64_t> max_batches;
  std::optional<Milliseconds> wait;
};

/// How long a line that may have been taken is sent again within its batch.
constexpr Milliseconds resend_for{60'000};

consumer::Batcher::Options batcher_options(const config::Settings& settings) {
  consumer::Batcher::Options options{.batch_timeout = settings.collect.batch_timeout.max,
                                     .poll_interval = settings.collect.poll_interval,
                                     .line_limit = settings.collect.batch_limit.max,
                                     .lines_per_claim = settings.collect.lines_per_claim};
  if (!settings.collect.batch_limit.is_fixed() || !settings.collect.batch_timeout.is_fixed()) {
    options.adaptive = consumer::Batcher::Adaptive{.min_limit = settings.collect.batch_limit.min,
                                                   .min_timeout = settings.collect.batch_timeout.min,
                                                   .line_cost = settings.collect.line_cost};
  }
  return options;
}

/// As many lines in a claim as may be in flight, unless the configuration says otherwise.
config::Settings with_lines_in_flight(const config::Settings& settings) {
  auto filled = settings;
  const bool is_given = config::setting_of(settings, "collect.lines_per_claim").origin.kind !=
                        config::OriginKind::default_value;
  if (!is_given && settings.collect.batch_limit.is_fixed())
    filled.collect.lines_per_claim = settings.sink.in_flight;
  return filled;
}

delivery::DeliverySink::Options sink_options(const config::Settings& settings) {
  delivery::DeliverySink::Options options;
  options.dispatch.in_flight = settings.sink.in_flight;
  options.dispatch.probe_time = settings.sink.timeout;
  // Each line has an id by which the receiver can tell that it has it.
  if (settings.sink.when_unknown == config::WhenUnknown::resend) options.dispatch.resend_for = resend_for;
  options.messages = settings.collect.lines_per_claim;
  options.message_limit = settings.collect.batch_limit.max;
  options.policy = {.when_unknown = settings.sink.when_unknown,
                    .supersede = false,
                    .resends = std::numeric_limits<int>::max()};
  return options;
}

/// What collect does with any sink, which is still to be set. Throws Error(configuration).
ConsumerSetup collect_setup(const config::Settings& settings) {
  auto setup = consumer_setup(settings);
  auto& turns = setup.collector.turns;
  turns.batcher = batcher_options(settings);
  turns.batcher_of = [settings](const queue::QueueRecord& queue) {
    return batcher_options(config::with_queue_defaults(settings, queue.name, queue.properties.batch_limit,
                                                       queue.properties.batch_timeout));
  };
  setup.collector.notify_always = settings.collect.notify == config::NotifyWhen::always;
  return setup;
}

/// How collect hands its batches over, as sink.to or sink.exec says. Throws Error(configuration).
ConsumerSetup handover_setup(const config::Settings& settings, const ConsumerParts& parts, Log& log) {
  const auto filled = with_lines_in_flight(settings);
  auto setup = collect_setup(filled);
  std::random_device random;
  std::vector<delivery::DeliverySink::Way> ways;
  ways.push_back({.carrier = carriers::configured_carrier(settings).make({settings, log, random()})});
  setup.collector.make_sink = sink_maker(
      {std::move(ways), [] { return std::make_unique<compose::LineComposer>(); }, sink_options(filled)},
      parts, log);
  return setup;
}

ConsumerSetup make_setup(const config::Settings& settings, Context& context) {
  const bool jsonl = settings.collect.format == config::CollectFormat::jsonl ||
                     context.global().output == OutputFormat::json;
  auto setup = collect_setup(settings);
  setup.session.writes_csv = !jsonl;
  setup.collector.make_sink = [jsonl, &output = context.out(), &log = context.log()] {
    return std::make_unique<carriers::LineSink>(
        jsonl ? compose::make_jsonl_encoder() : compose::make_csv_encoder(), output, &log);
  };
  return setup;
}

consumer::CollectorLimits make_limits(const CollectOptions& options) {
  return {.once = options.once,
          .max_batches = options.max_batches,
          .wait_for_database = options.wait.value_or(Milliseconds{0})};
}

/// A line on a terminal is acknowledged like one that a sender has read. Throws Error(declined) unless the
/// operator wants that.
void ask_at_terminal(Context& context) {
  if (!context.out().is_terminal()) return;
  context.log().warn(
      "standard output is a terminal: tokens shown here count as emitted, and no mail is sent");
  confirm(context, fmt::format("take tokens of queue {} here, and mail nobody?",
                               joined(context.settings().collect.queues, " and ")));
}

/// Whoever reads the journal could use the tokens, and no sender would get them.
void refuse_journal(Context& context) {
  if (!is_journal(context.out().fd())) return;
  throw Error(
      ExitCode::configuration, "standard output is systemd's journal, which is no place for tokens",
      "hand batches over with sink.exec or sink.to, or connect standard output to a sender of your own "
      "(docs/service.md)");
}

/// The kind of the sink is that of the start: sessions and metrics depend on it.
void require_same_kind(const config::Settings& settings, bool handing_over) {
  if (carriers::hands_over(settings) == handing_over) return;
  throw Error(ExitCode::configuration, "a reload cannot change between stdout and sink.to or sink.exec",
              "restart the collector");
}

ExitCode run_handover(const CollectOptions& options, Context& context) {
  return run_consumer(context, {.command = "collect", .delivers = true, .reader = "the answers of the sink"},
                      make_limits(options),
                      [&log = context.log()](const config::Settings& settings, const ConsumerParts& parts) {
                        require_same_kind(settings, true);
                        return handover_setup(settings, parts, log);
                      });
}

ExitCode run_collect(const CollectOptions& options, Context& context) {
  if (carriers::hands_over(context.settings())) return run_handover(options, context);
  refuse_journal(context);
  ask_at_terminal(context);
  const ConsumerKind kind{.command = "collect", .peer = context.out().fd()};
  try {
    return run_consumer(context, kind, make_limits(options),
                        [&context](const config::Settings& settings, const ConsumerParts&) {
                          require_same_kind(settings, false);
                          return make_setup(settings, context);
                        });
  } catch (const ReaderGone& gone) {
    // Here it is an error to be read: its batch was not acknowledged.
    throw Error(gone.code(), gone.what(), gone.hint());
  }
}

Run add_collect(CommandSyntax& syntax) {
  auto options = std::make_shared<CollectOptions>();
  syntax.flag("--once", options->once, "emit all due tokens, then stop");
  syntax.number<std::int64_t>("--max-batches N", options->max_batches, {1, 1'000'000'000},
                              "stop after N batches");
  syntax.duration("--wait DURATION", options->wait, {Milliseconds{0}, std::chrono::hours(24)},
                  "keep trying to reach the database at startup for this long");
  return [options](Context& context) { return run_collect(*options, context); };
}

}  // namespace

const Command collect_command{
    "collect", "write batches of signed tokens to stdout, or hand them over, until stopped",
    "Examples:\n"
    "  mailroom collect                        one line per batch, as CSV\n"
    "  mailroom collect --once --format jsonl  emit all due tokens, then stop\n"
    "  mailroom collect --exec ./sender.py     hand batches over to a program\n",
    add_collect,
    "Waits for tokens, claims due tokens in batches, signs each token, and writes one line per batch to "
    "standard output until it is stopped. A full batch is written at once, a smaller one when its oldest "
    "token has waited for the batch timeout. At the start and after a reconnect a smaller batch is written "
    "at once too. A batch is acknowledged only after its line is written: a crash repeats at most the batch "
    "in flight, and no committed token is lost. Any number of collectors may work on the same queue; each "
    "batch goes to one of them. With --lines-per-claim N one claim takes up to N full lines, for short "
    "lines at a high rate; a crash then repeats up to N lines.\n\n"
    "If --batch-limit or --batch-timeout is a range, the collector estimates how fast tokens arrive and chooses "
    "both for each batch. A token that comes alone is written at once. When tokens come faster, the collector waits "
    "for as many as make a line worth the delay: --line-cost says how much delay, summed over the tokens, one line "
    "saved is worth. A backlog is written in lines of the upper limit.\n\n"
    "A line of CSV holds action,email,login,token,code for each token, quoted as in RFC 4180. Action 1 is "
    "activation, action 2 is password recovery; mailroom action list shows the number of each. With --format jsonl a line "
    "is one JSON object: the batch and its tokens, and the message of each that has one; with messages it ends before it is "
    "longer than 128 KiB. CSV has no place for a message "
    "without a link: collect refuses to start while such messages wait in its queue, and ends, with exit status 3 and "
    "without acknowledging its batch, when it meets one. A reader must ignore a last line without a newline. Tokens that are expired, consumed, "
    "or of an account in the wrong status are skipped and counted.\n\n"
    "With --exec or --to a line counts as emitted when the receiver has acknowledged it. --exec starts a program, writes "
    "lines to its stdin and reads its answers from its descriptor 3; a program that ends or does not answer within "
    "--ack-timeout is started again, and gets again what it has not acknowledged. --to https://... posts each line as JSON, "
    "signed by the conventions of Standard Webhooks; nats:// and tls:// publish it to the JetStream stream of "
    "sink.stream, amqp:// and amqps:// to RabbitMQ, and all servers of a cluster can be named, separated by commas. Up to --in-flight lines are handed over at the same time, and a claim takes as "
    "many, unless --lines-per-claim says otherwise. What became of each token is recorded as for send: a token that is "
    "deferred comes again, a rejected one is a dead letter, and tokens wait in the queue while the receiver is "
    "unavailable.\n\n"
    "At a terminal, without --exec and --to, it asks before it takes tokens, or requires --yes: whatever is shown there counts "
    "as emitted, and reaches nobody. mailroom send --dry-run shows what would be mailed.\n\n"
    "SIGTERM and SIGINT finish and acknowledge the batch in flight; the exit status is then 0. A second "
    "signal stops the process at once. While it stops, mailroom cancels a statement that waits for a lock, "
    "and logs when it waits for the reader of standard output or the answers of the sink. SIGHUP reloads the "
    "configuration file and "
    "the keys, and logs what has changed. After a lost connection mailroom reconnects, with growing pauses "
    "of at most one second. Log lines go to standard error."};

}  // namespace mailroom::cmd
