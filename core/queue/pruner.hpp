#pragma once

#include <functional>
#include <string>

#include "base/clock.hpp"
#include "queue/prune_steps.hpp"

namespace mailroom {

/// How far a pruning has come.
struct PruneProgress {
  double fraction = 0;  ///< of the ids that it walks, 0 to 1
  std::int64_t tokens = 0;
  std::int64_t batches = 0;
};

/// Told after every step; false ends the pruning, and what is done stays done.
using PruneObserver = std::function<bool(const PruneProgress&)>;

/// What was removed, or would be.
struct PruneSummary {
  std::int64_t tokens = 0;
  std::int64_t batches = 0;
  std::int64_t skipped = 0;  ///< rows of both that somebody else was changing
  std::optional<HeldBack> held_back{};
  bool stopped = false;

  bool empty() const { return tokens == 0 && batches == 0; }
};

/// Who prunes, for the record; the reason may be empty.
struct PruneAuthor {
  std::string actor;
  std::string reason;
};

/// Removes tokens and records of batches that ended long ago, beside running collectors, step by step; see
/// PruneSteps for what goes and what stays. Owns the session while it lives, and every transaction.
class Pruner {
 public:
  /// Old is what ended `older_than` ago or earlier, from now on and by the server's clock, in whole seconds.
  Pruner(Connection& connection, Milliseconds older_than, int step);

  /// Seconds since 1970: what ended before is old.
  std::int64_t before() const { return limit_.before; }

  /// What remove() would remove if nobody had rows locked. Writes nothing.
  PruneSummary count(const PruneObserver& go_on);

  /// One pass over all tokens up to the lowest cursor, then one over all batches. Writes one row into
  /// mailroom_operations at the end, also when it was stopped or an error ends it; unless nothing was
  /// removed, or the session is lost.
  PruneSummary remove(const PruneAuthor& author, const PruneObserver& go_on);

 private:
  void record(const PruneAuthor& author, const PruneSummary& summary);

  Connection& connection_;
  Milliseconds older_than_;
  PruneLimit limit_;
  PruneSteps steps_;
};

}  // namespace mailroom
