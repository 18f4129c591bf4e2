// What every process of mailroom shows of itself, under the names that Prometheus' clients agree on.
#pragma once

#include "base/clock.hpp"
#include "metrics/metric_families.hpp"

namespace mailroom::metrics {

/// Memory, processor time and start of this process.
MetricFamilies process_metrics(WallTime started);

}  // namespace mailroom::metrics
