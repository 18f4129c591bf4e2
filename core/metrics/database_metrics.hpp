// The metrics that describe the database, made from one reading of it.
#pragma once

#include "metrics/database_reading.hpp"
#include "metrics/metric_families.hpp"

namespace mailroom {

/// The metrics of a reading; of one that failed only that it has failed. docs/metrics.md explains each.
MetricFamilies database_metrics(const DatabaseReading& reading);

}  // namespace mailroom
