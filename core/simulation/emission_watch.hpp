// What a simulation measures: which tokens were emitted, so that it can consume them, and how long
// transactions took.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "selection/id_range.hpp"
#include "simulation/lasting_connection.hpp"

namespace mailroom {

/// Counts durations in little memory. In microseconds: values below 256 are exact, larger ones rounded up by
/// at most 1/128.
class LatencyHistogram {
 public:
  void add(std::chrono::microseconds latency);

  std::int64_t count() const { return count_; }
  /// The smallest latency that at least `percent` of all do not exceed; never below the exact value. 0 if
  /// there are none.
  std::chrono::microseconds percentile(double percent) const;
  std::chrono::microseconds max() const { return std::chrono::microseconds(max_); }

 private:
  std::map<std::int64_t, std::int64_t> counts_;  ///< by rounded value
  std::int64_t count_ = 0;
  std::int64_t max_ = 0;
};

/// Throws Error(unusable) if no queue takes tokens of `action`, so that none would be emitted.
void require_queue_for(Connection& connection, const std::string& action);

/// Follows the emissions of all queues. Only reads.
class EmissionWatch {
 public:
  /// Begins with batches that are claimed from now on: they hold all tokens that are created later.
  explicit EmissionWatch(LastingConnection& connection);

  /// Returns the ids in batches that were acknowledged since the last call, in no order. Runs one statement
  /// per queue, which reads new batches and those that were open at the last call.
  std::vector<IdRange> poll();

 private:
  struct Queue {
    std::string name;
    std::int64_t newest = 0;
    std::vector<std::int64_t> open;
  };

  LastingConnection& connection_;
  std::vector<Queue> queues_;
};

}  // namespace mailroom
