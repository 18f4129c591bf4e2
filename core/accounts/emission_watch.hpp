#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accounts/lasting_connection.hpp"
#include "accounts/waiting_tokens.hpp"

namespace mailroom {

/// Follows what collectors emit, on every queue. Only reads.
class EmissionWatch {
 public:
  /// Begins with batches that are claimed from now on: tokens made later are all in those.
  explicit EmissionWatch(LastingConnection& connection);

  /// The ids in batches that were acknowledged since the last call, in no order. One statement a queue, which
  /// reads new batches and those that were open the last time.
  std::vector<IdRange> poll();

 private:
  struct Queue {
    std::string name;
    std::int64_t newest = 0;
    std::vector<std::int64_t> open;
  };

  void poll(Queue& queue, std::vector<IdRange>& emitted);

  LastingConnection& connection_;
  std::vector<Queue> queues_;
};

}  // namespace mailroom
