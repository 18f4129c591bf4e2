// What the metrics need to know of the database, its schema, its queues and their problems, and the metrics
// made of that.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "health/queue_health.hpp"
#include "messages/role_counts.hpp"
#include "metrics/metric_families.hpp"
#include "status/queue_status.hpp"
#include "status/table_sizes.hpp"

namespace mailroom::metrics {

/// What the database says of one queue.
struct QueueReading {
  status::QueueStatus status;
  std::vector<health::QueueFinding> findings;
};

/// What the database says, for the metrics.
struct DatabaseReading {
  std::string error{};  ///< why it could not be read; empty if it could
  long schema_version = 0;
  bool schema_is_dirty = false;
  long newest_schema_version = 0;  ///< that this binary knows
  std::optional<Error>
      schema_error{};  ///< why this binary cannot work on the schema; then there are no queues
  std::vector<QueueReading> queues{};
  messages::RecentRoles asked{};
  std::vector<status::TableSize> sizes{};
  std::optional<std::chrono::seconds> oldest_token{};  ///< how long ago it was created
  std::chrono::duration<double> took{};

  bool is_up() const { return error.empty(); }
};

/// Reads the schema and the queues that `queues` names, leaving out those that are unknown. Throws
/// ConnectionLost, DatabaseError and Error(locked).
DatabaseReading read_database(db::Connection& connection,
                              const std::function<std::vector<std::string>(db::Connection&)>& queues,
                              const health::HealthLimits& limits);

/// The metrics of a reading; of one that failed only that it has failed. docs/metrics.md explains each.
MetricFamilies database_metrics(const DatabaseReading& reading);

}  // namespace mailroom::metrics
