#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "feed/event.hpp"

namespace mailroom {

/// What decides which events a row of mailroom_batches tells of. Times in microseconds since 1970.
struct BatchRow {
  std::int64_t id = 0;
  int attempts = 1;
  std::int64_t claimed_us = 0;
  std::optional<std::int64_t> emitted_us;
  std::optional<std::int64_t> set_aside_us;
  std::int64_t emitted = 0;
  std::int64_t skipped = 0;
  bool holds_ids = false;

  bool is_open() const { return !emitted_us && !set_aside_us; }
};

/// The events of a row of which `known_attempts` have been told. A row that leases and records nothing is
/// only a state of its queue, and no event.
std::vector<EventKey> batch_events(const BatchRow& row, int known_attempts);

/// Remembers the open batches, whose rows change after they have become visible. Pure.
class BatchFollower {
 public:
  /// The batches that were open at the start.
  void start(const std::vector<BatchRow>& open);
  std::vector<std::int64_t> open_ids() const;
  /// The events of rows that are new or were open. Of a batch that went through several hands since the last
  /// look, only the last is known.
  std::vector<EventKey> saw(const std::vector<BatchRow>& rows);
  /// An open batch of which there is no row any more.
  void vanished(std::int64_t id) { attempts_.erase(id); }

 private:
  std::map<std::int64_t, int> attempts_;  ///< of the open batches, by id
};

}  // namespace mailroom
