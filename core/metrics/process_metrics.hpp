// The metrics that any process has, for dashboards that are not mailroom's own.
#pragma once

#include "base/clock.hpp"
#include "metrics/metric_families.hpp"

namespace mailroom {

/// Memory, processor time and start of this process, under the names that Prometheus' clients agree on.
MetricFamilies process_metrics(WallTime started);

}  // namespace mailroom
