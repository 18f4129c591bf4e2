// Builds everything around a Collector, and at a reload anew what the configuration may change.

#include "cmd/collect/consumer_run.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <random>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "carriers/capture/carrier.hpp"
#include "cmd/collect/reload_changes.hpp"
#include "cmd/terminal/tracing.hpp"
#include "consumer/service_reporter.hpp"
#include "db/conninfo.hpp"
#include "metrics/metrics_endpoint.hpp"
#include "queue/home.hpp"
#include "schema/bookkeeping.hpp"
#include "schema/schema_objects.hpp"

namespace mailroom::cmd {
namespace {

Field limit_field(const consumer::Batcher::Options& batcher) {
  const auto& adaptive = batcher.adaptive;
  if (!adaptive || adaptive->min_limit == batcher.line_limit) return {"limit", batcher.line_limit};
  return {"limit", fmt::format("{}..{}", adaptive->min_limit, batcher.line_limit)};
}

Field timeout_field(const consumer::Batcher::Options& batcher) {
  const auto max = format_duration(batcher.batch_timeout);
  const auto min = batcher.adaptive ? format_duration(batcher.adaptive->min_timeout) : max;
  return {"timeout", min == max ? max : fmt::format("{}..{}", min, max)};
}

void log_configuration(Log& log, const config::Settings& settings,
                       const consumer::Batcher::Options& batcher) {
  log.info("configured", {{"queue", joined(settings.collect.queues, ",")},
                          {"channel", settings.collect.channel},
                          limit_field(batcher),
                          timeout_field(batcher),
                          {"healthcheck_interval", format_duration(settings.collect.healthcheck_interval)}});
  log.info("connecting", {{"to", db::describe_target(settings.database.url)}});
}

metrics::DatabaseReader::Source metrics_source(const config::Settings& settings) {
  metrics::DatabaseReader::Source source{
      .conninfo = db::configured_database(settings), .queues = settings.collect.queues, .limits = {}};
  source.limits.collector_silence = health::silence_limit(settings.collect.poll_interval);
  return source;
}

/// Serves metrics, if the configuration says where.
std::unique_ptr<metrics::MetricsEndpoint> serve_metrics(const config::Settings& settings,
                                                        const ConsumerKind& kind, const Tracing* tracing,
                                                        Log& log) {
  if (!settings.metrics.listen) return nullptr;
  auto endpoint = std::make_unique<metrics::MetricsEndpoint>(
      *settings.metrics.listen,
      metrics::ConsumerMetrics::Options{.version = MAILROOM_VERSION,
                                        .command = kind.command,
                                        .queues = settings.collect.queues,
                                        .delivers = kind.delivers},
      metrics_source(settings), log,
      tracing == nullptr ? std::function<trace::SpanCounts()>() : [tracing] { return tracing->counts(); });
  log.info("serving metrics", {{"at", endpoint->address().text()}});
  return endpoint;
}

void check_schema(db::Connection& connection) {
  schema::require_current_schema(connection);
  schema::require_all_rows(connection, schema::tables_of_claims());
}

void check_delivering_schema(db::Connection& connection) {
  schema::require_current_schema(connection);
  schema::require_all_rows(connection, schema::tables_of_consumers());
}

void check_captured_schema(db::Connection& connection) {
  check_delivering_schema(connection);
  queue::require_no_deliveries(connection, std::string(capture::capture_sink));
}

/// Counts what became of the deliveries.
class DeliveryCount final : public consumer::ConsumerObserver {
 public:
  void answered(const consumer::SinkAnswer& answer) override {
    accepted_ = accepted_ || std::string_view(answer.outcome) == "accepted";
    if (std::string_view(answer.outcome) == "rejected") ++rejected_;
  }

  void require_success() const {
    if (accepted_ || rejected_ == 0) return;
    throw Error(ExitCode::unusable,
                fmt::format("each of the {} that were tried was rejected", counted(rejected_, "token")),
                "mailroom tail --state rejected --since 1h shows them, and why");
  }

 private:
  bool accepted_ = false;
  std::int64_t rejected_ = 0;
};

/// Tells the tracer of claims.
class ClaimTrace final : public consumer::ConsumerObserver {
 public:
  /// `tracer` must outlive this.
  explicit ClaimTrace(trace::MailTracer& tracer) : tracer_(tracer) {}

  void claimed(const consumer::ObservedClaim& claim) override {
    const auto& reply = claim.reply;
    if (reply.lease)
      tracer_.claimed(claim.queue, reply.lease->batch, reply.size, trace::span_now(), claim.took);
  }

 private:
  trace::MailTracer& tracer_;
};

/// Joins what a consumer does with its session.
class SessionMaker {
 public:
  /// `watcher` and `log` must outlive this and the sessions.
  SessionMaker(const ConsumerKind& kind, process::StopWatcher& watcher, Log& log)
      : delivers_(kind.delivers), watcher_(watcher), log_(log) {}

  /// The collector leaves its session if that of `setup` is another one than before.
  consumer::CollectorSetup join(ConsumerSetup setup) {
    auto& session = setup.session;
    session.detail.delivers = delivers_;
    session.check_schema = setup.captures ? check_captured_schema
                           : delivers_    ? check_delivering_schema
                                          : check_schema;
    session.watcher = &watcher_;
    session.log = &log_;
    const bool starts = count_ == 0;
    // Metrics and traces are there from the start on or not at all.
    if (!starts) session.detail.with_creation = session_.detail.with_creation;
    if (!starts) session.detail.reads_traces = session_.detail.reads_traces;
    if (session != session_) ++count_;
    session_ = session;
    setup.collector.session_identity = std::to_string(count_);
    // What comes while it runs must not end it: the other mails go on.
    setup.collector.connect = [session, looks_for_links = starts && !setup.has_link]() mutable {
      const process::StopWatcher::Wait waiting(session.watcher, process::Awaited::database);
      auto made = std::make_unique<claim::PgQueueSession>(session);
      if (looks_for_links) made->require_no_links();
      looks_for_links = false;
      return made;
    };
    setup.collector.count_waiting = consumer::backlog_counter(session.conninfo, session.queues);
    return std::move(setup.collector);
  }

 private:
  bool delivers_;
  process::StopWatcher& watcher_;
  Log& log_;
  claim::PgQueueSession::Setup session_{};  ///< of the last setup
  int count_ = 0;
};

}  // namespace

ConsumerSetup consumer_setup(const config::Settings& settings) {
  auto key = signing::load_key_ring(settings).current;
  claim::PgQueueSession::Setup session{.conninfo = db::configured_database(settings),
                                       .queues = settings.collect.queues,
                                       .channel = settings.collect.channel,
                                       .fingerprint = key.fingerprint(),
                                       .detail = {.with_creation = settings.metrics.listen.has_value(),
                                                  .reads_traces = !settings.trace.endpoint.empty()}};
  return {.collector = {.connect = {},
                        .session_identity = {},
                        .key = std::move(key),
                        .make_sink = {},
                        .queues = settings.collect.queues,
                        .turns = {.batcher = {}, .max_wait = settings.queue.max_wait},
                        .healthcheck_interval = settings.collect.healthcheck_interval},
          .session = std::move(session)};
}

ExitCode run_consumer(Context& context, const ConsumerKind& kind, const consumer::CollectorLimits& limits,
                      const MakeSetup& make_setup) {
  const auto& settings = context.settings();
  process::StopSignal signal;
  process::StopWatcher watcher(signal, context.log(), kind.reader);
  consumer::ConsumerObservers observers;
  const consumer::ServiceManager manager(context.log());
  consumer::ServiceReporter reporter(manager, signal, watcher);
  observers.add(reporter);
  DeliveryCount deliveries;
  observers.add(deliveries);
  delivery::DeliveryLog delivery_log(context.log());
  // Without outcomes there is nothing to trace.
  const auto tracing = kind.delivers ? open_tracing(settings, context.log()) : nullptr;
  std::optional<ClaimTrace> claim_trace;
  if (tracing) observers.add(claim_trace.emplace(tracing->tracer()));
  const ConsumerParts parts{signal, watcher, observers, delivery_log, tracing ? &tracing->tracer() : nullptr};
  SessionMaker sessions(kind, watcher, context.log());
  auto setup = sessions.join(make_setup(settings, parts));
  reporter.count_with(setup.count_waiting);
  context.warn_of_visible_password();
  log_configuration(context.log(), settings, setup.turns.batcher);
  const auto metrics = serve_metrics(settings, kind, tracing.get(), context.log());
  if (metrics) metrics->observe(observers);
  process::SystemEnvironment environment(signal, kind.peer, &watcher);
  const auto reload = [&, running = settings, contents = read_contents(settings, kind.mails()),
                       fingerprint = setup.key.fingerprint()]() mutable {
    const auto fresh = context.load();
    auto next = sessions.join(make_setup(fresh, parts));
    reporter.count_with(next.count_waiting);
    next.changes = changes_between(running, fresh);
    auto fresh_contents = read_contents(fresh, kind.mails());
    std::ranges::move(changes_between(contents, fresh_contents), std::back_inserter(next.changes));
    if (next.key.fingerprint() != fingerprint)
      next.changes.push_back({"signing key", fingerprint, next.key.fingerprint()});
    if (metrics) metrics->configure(metrics_source(fresh));
    running = fresh;
    contents = std::move(fresh_contents);
    fingerprint = next.key.fingerprint();
    return next;
  };
  consumer::Collector collector(std::move(setup), limits, reload, environment, context.log(), observers);
  context.explain_unreachable([&] { collector.run(); });
  context.log().info("stopped");
  if (limits.once) deliveries.require_success();
  return ExitCode::done;
}

std::function<std::unique_ptr<consumer::Sink>()> sink_maker(DeliverySetup setup, const ConsumerParts& parts,
                                                            Log& log) {
  std::random_device random;
  setup.options.dispatch.seed = random();
  const auto ways = std::make_shared<std::vector<delivery::DeliverySink::Way>>(std::move(setup.ways));
  return [ways, compose = std::move(setup.compose), options = setup.options, stop = parts.signal.stop_fd(),
          &log, &watcher = parts.watcher, &observer = parts.observer, &delivery_log = parts.delivery_log,
          tracer = parts.tracer] {
    watcher.name_reader(fmt::format("the answers of {}", ways->front().carrier->endpoints().front()));
    return std::make_unique<delivery::DeliverySink>(compose(), std::move(*ways), options, stop, log,
                                                    delivery_log, observer, tracer);
  };
}

}  // namespace mailroom::cmd
