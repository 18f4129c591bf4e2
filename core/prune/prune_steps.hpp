#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "db/connection.hpp"

namespace mailroom {

/// Rows that ended before `before` (seconds since 1970) are old. A token ends when it is consumed or else
/// expires, a batch when it is acknowledged or dead-lettered.
struct PruneLimit {
  std::int64_t before = 0;
  int step = 1000;  ///< maximum number of rows that one transaction removes
};

enum class PruneTable { tokens, batches };

/// Ids from `first` to `last`; empty if `last` is less than `first`.
struct IdSpan {
  std::int64_t first = 1;
  std::int64_t last = 0;

  std::int64_t size() const { return last < first ? 0 : last - first + 1; }
};

/// The ids of a pass, as of its start.
struct PruneRange {
  IdSpan tokens;  ///< none above the cursor of any queue
  IdSpan batches;
};

/// What one step did.
struct PruneStep {
  std::int64_t old = 0;                   ///< rows that may be removed
  std::int64_t removed = 0;               ///< rows removed; other sessions had locked or changed the rest
  std::optional<std::int64_t> reached{};  ///< the next step continues after this id; nullopt at the end
};

/// A queue whose cursor has not passed old tokens.
struct HeldBack {
  std::string queue;
  std::int64_t cursor = 0;
};

/// The statements of pruning. Each step is one statement in a transaction of its own, so it sees a queue's
/// cursor, gaps and open batches in one snapshot. It needs no queue lock: old tokens are never due, so a
/// concurrent claim, rewind or replay only has fewer tokens to skip. A step does not wait for locked rows,
/// and checks rows again that changed since the snapshot.
class PruneSteps {
 public:
  /// Changes settings of the session and prepares statements. Create at most one per connection; the
  /// connection must outlive it.
  PruneSteps(Connection& connection, PruneLimit limit);

  PruneRange range();

  /// Reads rows after `after` in id order until it has found as many old rows as the limit's step or has read
  /// 20,000 rows, and removes the old ones; with `dry_run` only counts them. It removes:
  /// - tokens that are old, not above a cursor, and in no gap and no open batch;
  /// - batches that are old, not the newest of their queue, and have no token left (would have none, with
  ///   `dry_run`), so that every remaining token keeps the record of its emission.
  PruneStep step(PruneTable table, std::int64_t after, const PruneRange& range, bool dry_run);

  /// The queue with the lowest cursor, if old tokens are among the next 10,000 above it.
  std::optional<HeldBack> held_back();

 private:
  Connection& connection_;
  PruneLimit limit_;
};

}  // namespace mailroom
