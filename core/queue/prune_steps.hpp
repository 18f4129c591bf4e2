#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "db/connection.hpp"

namespace mailroom {

/// Which rows are old: whatever ended before `before` (seconds since 1970), a token by being consumed or else
/// by expiring, a batch by being acknowledged or set aside.
struct PruneLimit {
  std::int64_t before = 0;
  int step = 1000;  ///< rows that one transaction removes at the most
};

enum class PruneTable { tokens, batches };

/// Ids from `first` to `last`; none when that is less.
struct IdSpan {
  std::int64_t first = 1;
  std::int64_t last = 0;

  std::int64_t size() const { return last < first ? 0 : last - first + 1; }
};

/// The ids of a pass, from its start.
struct PruneRange {
  IdSpan tokens;  ///< none above the cursor of any queue
  IdSpan batches;
};

/// What one step did.
struct PruneStep {
  std::int64_t old = 0;                   ///< rows that may go
  std::int64_t removed = 0;               ///< those that went; the others somebody else was changing
  std::optional<std::int64_t> reached{};  ///< the id that the next step goes on after; nothing at the end
};

/// A queue that has not passed tokens which ended long ago.
struct HeldBack {
  std::string queue;
  std::int64_t cursor = 0;
};

/// The statements of a pruning. Each step is one statement and a transaction of its own, so each judges by
/// one snapshot: what a queue's cursor has passed is then seen together with the holes and open batches that
/// go with it. No lock of the queue is needed: what is old is never due, so the worst that a claim, rewind or
/// replay at the same moment can meet is a token fewer to pass over. Rows that somebody has locked are not
/// waited for, and what was changed since the snapshot is judged anew.
class PruneSteps {
 public:
  /// Changes settings of the session and prepares statements: one a connection, which outlives this.
  PruneSteps(Connection& connection, PruneLimit limit);

  PruneRange range();

  /// Reads rows in the order of their ids from after `after`, until as many as the limit's step may go or
  /// 20,000 are read, and removes those that may; with `dry_run` counts them. These may go:
  /// - tokens that are old, not above a cursor, and in no hole and no open batch;
  /// - batches that are old, not the newest of their queue, and of whose tokens none is left (none would be
  ///   left, with `dry_run`), so that what is there can be asked when it was handed on.
  PruneStep step(PruneTable table, std::int64_t after, const PruneRange& range, bool dry_run);

  /// The queue with the lowest cursor, if old tokens are among the next 10,000 above it.
  std::optional<HeldBack> held_back();

 private:
  Connection& connection_;
  PruneLimit limit_;
};

}  // namespace mailroom
