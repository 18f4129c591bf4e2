// Declares each metric with what it means.

#include "metrics/consumer_families.hpp"

#include <prometheus/registry.h>
#include <string>

namespace mailroom::metrics {
namespace {

prometheus::Family<prometheus::Counter>& counters(prometheus::Registry& registry, const std::string& name,
                                                  const std::string& help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

prometheus::Family<prometheus::Gauge>& gauges(prometheus::Registry& registry, const std::string& name,
                                              const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

prometheus::Family<prometheus::Histogram>& histograms(prometheus::Registry& registry, const std::string& name,
                                                      const std::string& help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace

ConsumerMetrics::Families::Families(prometheus::Registry& registry)
    : tokens(counters(registry, "mailroom_tokens_total",
                      "Tokens by what became of them: emitted, skipped, or the outcome of a delivery.")),
      batches(counters(registry, "mailroom_batches_total", "Batches written, by why they were taken.")),
      claims(counters(registry, "mailroom_claims_total", "Claims, also those that found nothing.")),
      dead(counters(registry, "mailroom_dead_batches_total",
                    "Batches that this process gave up after too many attempts.")),
      repeated(counters(registry, "mailroom_repeated_batches_total",
                        "Batches that were taken over before they were acknowledged: maybe emitted twice.")),
      size(histograms(registry, "mailroom_batch_tokens", "Tokens in a batch, as claimed.")),
      stage(histograms(registry, "mailroom_batch_stage_seconds",
                       "Time that a batch spent in each stage: claim, fetch, sign, write.")),
      emission(histograms(registry, "mailroom_emission_delay_seconds",
                          "From the creation of a token until its line was written.")),
      acceptance(
          histograms(registry, acceptance_name, "From the creation of a token until a sink accepted it.")),
      answers(counters(registry, "mailroom_sink_answers_total",
                       "Attempts to deliver a token, by outcome and class of the reply.")),
      answer_time(histograms(registry, answer_time_name, "Time that an attempt to deliver a token took.")),
      session(
          gauges(registry, "mailroom_session_up", "1 while the consumer has its session with the database.")
              .Add({})),
      reconnects(counters(registry, "mailroom_reconnects_total", "Sessions after the first one.").Add({})),
      reloads(counters(registry, "mailroom_reloads_total", "Reloads of the configuration, by result.")) {}

}  // namespace mailroom::metrics
