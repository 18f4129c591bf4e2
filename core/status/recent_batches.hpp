// What the newest batches of a queue say: emissions, the keys that they were signed with, and the last claim.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace mailroom::status {

struct QueueStatus;

/// The last claim, among the newest 5,000 batches.
struct LastClaim {
  std::string claimed_by;  ///< `mailroom collect USER@HOST:PID`
  Milliseconds age{};
};

/// A key that tokens of the last hour were signed with. Of a key that no connected consumer has, only those
/// count that are neither used nor over, and whose newest mail has it.
struct RecentKey {
  std::string fingerprint;
  std::int64_t tokens = 0;  ///< of the newest 10,000
  Milliseconds last{};      ///< how long ago
};

/// The tokens acknowledged in the last five minutes.
struct RecentEmissions {
  static constexpr std::chrono::seconds bucket{10};
  static constexpr std::size_t bucket_count = 30;

  std::vector<std::int64_t> tokens = std::vector<std::int64_t>(bucket_count, 0);  ///< newest first
  Milliseconds known{};  ///< how far back the records go, at most 5 min

  std::int64_t total() const;
  double per_second() const;
  /// The tokens per second of the last complete buckets, at most a minute of them and not longer than `busy`,
  /// since the first of them that has any. Nullopt if there is no complete bucket, or all are empty.
  struct Rate {
    double per_second = 0;
    std::chrono::seconds over{};
  };
  std::optional<Rate> last_rate(Milliseconds busy) const;
};

/// Reads what the newest 5,000 batches of `status.queue` say into the status, whose collectors are known,
/// also what has expired and which batches are dead. Returns the highest cursor that the queue had lately.
/// Within the caller's transaction.
std::int64_t read_recent_batches(pqxx::transaction_base& transaction, QueueStatus& status);

}  // namespace mailroom::status
