// Counts by labels and buckets. The counters of a queue and an action begin at 0, not with the first token.

#include "metrics/consumer_metrics.hpp"

#include <algorithm>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include "metrics/consumer_families.hpp"

namespace mailroom::metrics {
namespace {

using prometheus::Counter;
using prometheus::Histogram;
using Seconds = std::chrono::duration<double>;
using Buckets = Histogram::BucketBoundaries;

/// From a claim of a small batch to a reader that is stuck.
const Buckets stage_buckets{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                            0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};
/// Tokens have whole seconds, and usually live for 15 minutes.
const Buckets delay_buckets{1, 2, 3, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600};
const Buckets size_buckets{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10'000};
const Buckets answer_buckets{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                             0.5,   1,      2.5,   5,    10,    30,   60,  120};

constexpr std::array<const char*, 4> stages{"claim", "fetch", "sign", "write"};
constexpr std::array<const char*, 4> skip_reasons{"expired", "consumed", "wrong_status", "invalid"};
constexpr std::array<consumer::BatchTrigger, 4> batch_triggers{
    consumer::BatchTrigger::full, consumer::BatchTrigger::timeout, consumer::BatchTrigger::drain,
    consumer::BatchTrigger::replay};
constexpr std::array<const char*, 5> answer_outcomes{"accepted", "deferred", "rejected", "unknown",
                                                     "unavailable"};
constexpr std::array<const char*, 4> reply_classes{"2xx", "4xx", "5xx", "none"};

std::size_t class_of(int code) {
  if (code >= 200 && code < 300) return 0;
  if (code >= 400 && code < 500) return 1;
  return code >= 500 && code < 600 ? 2 : 3;
}

/// Observes all tokens of a batch under one lock.
void observe_delays(Histogram& histogram, std::span<const consumer::CreatedTokens> created) {
  if (created.empty()) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::vector<double> in_bucket(delay_buckets.size() + 1);
  double sum = 0;
  for (const auto& tokens : created) {
    // Clocks differ, and the second of creation is rounded.
    const auto delay = std::max(Seconds(now - std::chrono::seconds(tokens.second)).count(), 0.0);
    const auto bucket = std::lower_bound(delay_buckets.begin(), delay_buckets.end(), delay);
    in_bucket[static_cast<std::size_t>(bucket - delay_buckets.begin())] += tokens.count;
    sum += delay * tokens.count;
  }
  histogram.ObserveMultiple(in_bucket, sum);
}

}  // namespace

/// Of an action in a queue.
struct ConsumerMetrics::TokenCounters {
  TokenCounters(Families& families, const std::string& queue, const std::string& action, bool delivers)
      : emitted(delivers ? nullptr : &counter(families, queue, action, "emitted")) {
    for (std::size_t i = 0; i < skip_reasons.size(); ++i)
      skipped[i] = &counter(families, queue, action, "skipped", skip_reasons[i]);
    for (std::size_t i = 0; delivers && i < fate::delivery_outcomes.size(); ++i)
      delivered[i] = &counter(families, queue, action, fate::outcome_name(fate::delivery_outcomes[i]));
  }

  static Counter& counter(Families& families, const std::string& queue, const std::string& action,
                          const std::string& outcome, const std::string& reason = {}) {
    return families.tokens.Add(
        {{"queue", queue}, {"action", action}, {"outcome", outcome}, {"reason", reason}});
  }

  Counter* emitted;  ///< null for a sink with outcomes
  std::array<Counter*, skip_reasons.size()> skipped{};
  std::array<Counter*, fate::delivery_outcomes.size()> delivered{};
};

struct ConsumerMetrics::QueueCounters {
  QueueCounters(Families& all, const std::string& name, bool is_delivered)
      : families(all),
        queue(name),
        delivers(is_delivered),
        expired_unread(TokenCounters::counter(families, queue, {}, "skipped", skip_reasons[0])),
        consumed_unread(TokenCounters::counter(families, queue, {}, "skipped", skip_reasons[1])),
        claims(families.claims.Add({{"queue", queue}})),
        dead(families.dead.Add({{"queue", queue}})),
        repeated(families.repeated.Add({{"queue", queue}})),
        size(families.size.Add({{"queue", queue}}, size_buckets)),
        delay((delivers ? families.acceptance : families.emission).Add({{"queue", queue}}, delay_buckets)) {
    for (std::size_t i = 0; i < batch_triggers.size(); ++i)
      batches[i] = &families.batches.Add(
          {{"queue", queue}, {"trigger", consumer::batch_trigger_name(batch_triggers[i])}});
    for (std::size_t i = 0; i < stages.size(); ++i)
      stage[i] = &families.stage.Add({{"queue", queue}, {"stage", stages[i]}}, stage_buckets);
  }

  TokenCounters& tokens(const std::string& action) {
    const auto found = actions.find(action);
    if (found != actions.end()) return found->second;
    return actions.try_emplace(action, families, queue, action, delivers).first->second;
  }

  Families& families;
  std::string queue;
  bool delivers;
  std::map<std::string, TokenCounters> actions;
  Counter& expired_unread;  ///< skipped by a claim, which does not read their action
  Counter& consumed_unread;
  Counter& claims;
  Counter& dead;
  Counter& repeated;
  Histogram& size;
  Histogram& delay;
  std::array<Counter*, batch_triggers.size()> batches{};
  std::array<Histogram*, stages.size()> stage{};
};

struct ConsumerMetrics::SinkCounters {
  SinkCounters(Families& families, const std::string& sink)
      : time(families.answer_time.Add({{"sink", sink}}, answer_buckets)) {
    for (std::size_t i = 0; i < answer_outcomes.size(); ++i) {
      for (std::size_t j = 0; j < reply_classes.size(); ++j)
        answers[i][j] = &families.answers.Add(
            {{"sink", sink}, {"outcome", answer_outcomes[i]}, {"reply", reply_classes[j]}});
    }
  }

  Histogram& time;
  std::array<std::array<Counter*, reply_classes.size()>, answer_outcomes.size()> answers{};
};

ConsumerMetrics::ConsumerMetrics(const Options& options)
    : delivers_(options.delivers),
      registry_(std::make_unique<prometheus::Registry>()),
      families_(std::make_unique<Families>(*registry_)) {
  prometheus::BuildGauge()
      .Name("mailroom_build_info")
      .Help("1, with the version and the command.")
      .Register(*registry_)
      .Add({{"version", options.version}, {"command", options.command}})
      .Set(1);
  for (const auto* result : {"success", "failure"})
    families_->reloads.Add({{"result", result}});
  for (const auto& name : options.queues)
    queue(name);
}

ConsumerMetrics::~ConsumerMetrics() = default;

void ConsumerMetrics::connected() {
  families_->session.Set(1);
  if (was_connected_) families_->reconnects.Increment();
  was_connected_ = true;
  is_connected_ = true;
}

void ConsumerMetrics::learned(const std::vector<std::string>& actions) {
  actions_ = actions;
  for (auto& [name, counters] : queues_) {
    for (const auto& action : actions_)
      counters.tokens(action);
  }
}

void ConsumerMetrics::disconnected() {
  families_->session.Set(0);
  is_connected_ = false;
}

void ConsumerMetrics::claimed(const consumer::ObservedClaim& claim) {
  auto& counters = queue(claim.queue);
  const auto& reply = claim.reply;
  if (!claim.only_acknowledged) counters.claims.Increment();
  if (reply.dead) counters.dead.Increment();
  if (reply.receipt_void) counters.repeated.Increment();
  counters.expired_unread.Increment(reply.skipped_expired);
  counters.consumed_unread.Increment(reply.skipped - reply.skipped_expired);
}

void ConsumerMetrics::finished(const consumer::FinishedBatch& batch) {
  const auto& receipt = batch.receipt;
  auto& counters = queue(receipt.lease.queue);
  counters.batches[static_cast<std::size_t>(batch.trigger)]->Increment();
  counters.size.Observe(batch.size);
  const std::array times{batch.times.claim, batch.times.fetch, batch.times.sign, batch.times.write};
  for (std::size_t i = 0; i < times.size(); ++i)
    counters.stage[i]->Observe(Seconds(times[i]).count());
  if (receipt.outcomes) return count_outcomes(receipt, counters);
  for (const auto& [action, counts] : batch.actions) {
    auto& tokens = counters.tokens(action);
    tokens.emitted->Increment(counts.emitted);
    const std::array skipped{counts.expired, counts.consumed, counts.wrong_status, counts.invalid};
    for (std::size_t i = 0; i < skipped.size(); ++i)
      tokens.skipped[i]->Increment(skipped[i]);
  }
  observe_delays(counters.delay, batch.created);
}

void ConsumerMetrics::count_outcomes(const claim::Receipt& receipt, QueueCounters& counters) {
  for (const auto& outcome : *receipt.outcomes) {
    const auto place = std::ranges::find(fate::delivery_outcomes, outcome.state);
    counters.tokens(outcome.action)
        .delivered[static_cast<std::size_t>(place - fate::delivery_outcomes.begin())]
        ->Increment();
  }
}

void ConsumerMetrics::answered(const consumer::SinkAnswer& answer) {
  if (answer.delay) queue(answer.queue).delay.Observe(std::max(answer.delay->count(), 0.0));
  if (answer.trace) note_exemplars(answer);
  if (answer.sink.empty()) return;
  auto& counters = sink_counters(answer.sink);
  counters.time.Observe(Seconds(answer.took).count());
  const auto outcome =
      std::find(answer_outcomes.begin(), answer_outcomes.end(), std::string_view(answer.outcome));
  if (outcome == answer_outcomes.end()) return;
  counters.answers[static_cast<std::size_t>(outcome - answer_outcomes.begin())][class_of(answer.code)]
      ->Increment();
}

void ConsumerMetrics::note_exemplars(const consumer::SinkAnswer& answer) {
  Exemplar exemplar{.trace = *answer.trace, .value = Seconds(answer.took).count(), .at = wall_now()};
  if (!answer.sink.empty())
    exemplars_.note(Families::answer_time_name, answer.sink, answer_buckets, exemplar);
  if (!answer.delay) return;
  exemplar.value = std::max(answer.delay->count(), 0.0);
  exemplars_.note(Families::acceptance_name, answer.queue, delay_buckets, exemplar);
}

void ConsumerMetrics::reloaded(bool succeeded) {
  families_->reloads.Add({{"result", succeeded ? "success" : "failure"}}).Increment();
}

ConsumerMetrics::QueueCounters& ConsumerMetrics::queue(const std::string& name) {
  const auto found = queues_.find(name);
  if (found != queues_.end()) return found->second;
  auto& counters = queues_.try_emplace(name, *families_, name, delivers_).first->second;
  for (const auto& action : actions_)
    counters.tokens(action);
  return counters;
}

ConsumerMetrics::SinkCounters& ConsumerMetrics::sink_counters(const std::string& name) {
  const auto found = sinks_.find(name);
  if (found != sinks_.end()) return found->second;
  return sinks_.try_emplace(name, *families_, name).first->second;
}

std::vector<prometheus::MetricFamily> ConsumerMetrics::collect() const {
  return registry_->Collect();
}

}  // namespace mailroom::metrics
