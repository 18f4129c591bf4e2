// The metrics that a consumer counts itself, by their names.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include "metrics/consumer_metrics.hpp"

namespace mailroom::metrics {

struct ConsumerMetrics::Families {
  // Those with exemplars.
  static constexpr const char* acceptance_name = "mailroom_acceptance_delay_seconds";
  static constexpr const char* answer_time_name = "mailroom_sink_answer_seconds";

  explicit Families(prometheus::Registry& registry);

  prometheus::Family<prometheus::Counter>& tokens;
  prometheus::Family<prometheus::Counter>& batches;
  prometheus::Family<prometheus::Counter>& claims;
  prometheus::Family<prometheus::Counter>& dead;
  prometheus::Family<prometheus::Counter>& repeated;
  prometheus::Family<prometheus::Histogram>& size;
  prometheus::Family<prometheus::Histogram>& stage;
  prometheus::Family<prometheus::Histogram>& emission;
  prometheus::Family<prometheus::Histogram>& acceptance;
  prometheus::Family<prometheus::Counter>& answers;
  prometheus::Family<prometheus::Histogram>& answer_time;
  prometheus::Gauge& session;
  prometheus::Counter& reconnects;
  prometheus::Family<prometheus::Counter>& reloads;
};

}  // namespace mailroom::metrics
