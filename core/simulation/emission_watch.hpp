// Which tokens were emitted, so that a simulation can act for the people who got them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "selection/id_range.hpp"

namespace mailroom::simulation {

/// Throws Error(unusable) if no queue takes tokens of `action`, so that none would be emitted.
void require_queue_for(db::Connection& connection, const std::string& action);

/// Follows the emissions of all queues. Only reads.
class EmissionWatch {
 public:
  /// Begins with batches that are claimed from now on: they hold all tokens that are created later.
  explicit EmissionWatch(db::Connection& connection);

  /// Returns the ids in batches that were acknowledged since the last call, in no order. Runs one statement
  /// per queue, which reads new batches and those that were open at the last call.
  std::vector<selection::IdRange> poll();

 private:
  struct Queue {
    std::string name;
    std::int64_t newest = 0;
    std::vector<std::int64_t> open;
  };

  db::Connection& connection_;
  std::vector<Queue> queues_;
};

}  // namespace mailroom::simulation
