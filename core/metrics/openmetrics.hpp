// Writes metrics as OpenMetrics, which has exemplars where Prometheus' own format has none.
#pragma once

#include <prometheus/metric_family.h>
#include <string>
#include <vector>

#include "metrics/exemplars.hpp"

namespace mailroom {

constexpr const char* openmetrics_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `families` in OpenMetrics' text format 1.0.0. Each bucket of a histogram that has an exemplar names its
/// trace.
std::string openmetrics_text(const std::vector<prometheus::MetricFamily>& families,
                             const Exemplars& exemplars);

}  // namespace mailroom
