// The counts of reconcile for Prometheus' node_exporter.

#include "cmd/reconcile/reconcile_report.hpp"
#include "metrics/metric_families.hpp"

namespace mailroom::cmd {
namespace {

double in_unix_seconds(Moment moment) {
  return std::chrono::duration<double>(moment.time_since_epoch()).count();
}

void add_queue(const reconcile::QueueReconciliation& queue, metrics::MetricFamilies& metrics) {
  std::array<std::int64_t, fate::outcome_count> tokens{};
  for (const auto& count : queue.counts)
    tokens.at(static_cast<std::size_t>(count.outcome)) += count.tokens;
  for (std::size_t i = 0; i < fate::outcome_count; ++i) {
    metrics.gauge("mailroom_reconcile_tokens", "Tokens of the period, by what became of them.",
                  {{"queue", queue.queue}, {"outcome", fate::outcome_name(static_cast<fate::Outcome>(i))}},
                  static_cast<double>(tokens[i]));
  }
}

}  // namespace

std::string render_metrics(const ReconcileReport& report) {
  metrics::MetricFamilies metrics;
  for (const auto& queue : report.result.queues)
    add_queue(queue, metrics);
  if (report.output != nullptr) {
    metrics.gauge("mailroom_reconcile_defective_tokens",
                  "Tokens in the output of consumers that are not genuine, or that do not exist.", {},
                  static_cast<double>(report.output->defective));
  }
  if (report.result.lost.is_known) {
    metrics.gauge("mailroom_reconcile_messages_without_token",
                  "Messages of the period that are never sent, since their trigger did not fire.", {},
                  static_cast<double>(report.result.lost.total()));
  }
  metrics.gauge("mailroom_reconcile_since_timestamp_seconds", "When the period began, in seconds since 1970.",
                {}, in_unix_seconds(report.result.period.since));
  metrics.gauge("mailroom_reconcile_timestamp_seconds",
                "When the tokens were accounted for, in seconds since 1970.", {},
                in_unix_seconds(report.result.now));
  return metrics::exposition_text(metrics.all());
}

}  // namespace mailroom::cmd
