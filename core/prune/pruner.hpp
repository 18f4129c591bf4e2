// Deletes what is older than audit.retention, for mailroom prune.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "config/settings.hpp"
#include "db/connection.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::prune {

/// The progress of pruning.
struct PruneProgress {
  double fraction = 0;  ///< of the ids to read, 0 to 1
  std::int64_t tokens = 0;
  std::int64_t messages = 0;
  std::int64_t contents = 0;
  std::int64_t batches = 0;
  std::int64_t deliveries = 0;
  std::int64_t bounces = 0;
};

/// What is old: what ended so long ago.
struct PruneAges {
  Milliseconds records{};
  Milliseconds contents{};  ///< of messages, whose record stays
};

/// As audit.retention and messages.retention say: what has no record any more needs no content.
inline PruneAges prune_ages(const config::Settings& settings) {
  return {.records = settings.audit.retention,
          .contents = std::min(settings.messages.retention, settings.audit.retention)};
}

/// Called after every step; returning false ends the pruning, and keeps what was done.
using PruneObserver = std::function<bool(const PruneProgress&)>;

/// A queue whose cursor has not passed old tokens.
struct HeldBack {
  std::string queue;
  std::int64_t cursor = 0;
};

/// What was removed, or would be.
struct PruneSummary {
  bool dry_run = false;
  Milliseconds older_than{};
  Moment before{};  ///< what ended before is old
  std::int64_t tokens = 0;
  std::int64_t messages = 0;
  std::int64_t contents = 0;  ///< messages that lose their content alone
  std::int64_t batches = 0;
  std::int64_t deliveries = 0;          ///< records of deliveries
  std::int64_t bounces = 0;             ///< records of what came back
  std::int64_t skipped = 0;             ///< rows of these tables that other sessions had locked or changed
  std::int64_t referred = 0;            ///< rows that foreign keys of the application keep
  std::string referred_by{};            ///< such a key, with its table
  bool keeps_contents = false;          ///< this role may not remove attachments
  std::optional<HeldBack> held_back{};  ///< the queue with the lowest cursor, if old tokens follow it soon
  bool stopped = false;

  bool empty() const {
    return tokens == 0 && messages == 0 && contents == 0 && batches == 0 && deliveries == 0 && bounces == 0;
  }
};

/// Removes old tokens, messages, batches and deliveries step by step while collectors run. A token ends when
/// it is consumed or else expires, a message with its last token or when it is cancelled or replaced, a batch
/// when it is acknowledged or dead-lettered, a delivery at its last outcome. Owns the session while it lives:
/// it changes settings and prepares statements, and owns every transaction.
class Pruner {
 public:
  /// Rows that ended so long ago or earlier are old, by the server's clock at this moment, in whole seconds.
  /// One transaction removes at most `step` rows.
  Pruner(db::Connection& connection, const PruneAges& ages, int step);

  /// Counts what remove() would remove if no row were locked. Writes nothing.
  PruneSummary count(const PruneObserver& go_on);

  /// Makes one pass over all tokens up to the lowest cursor, two over all messages, the second for their
  /// contents, one over all batches, and one over all deliveries. Writes one row into mailroom_operations at
  /// the end, also after a stop or an error, unless nothing was removed or the connection was lost.
  PruneSummary remove(const queue::OperationAuthor& author, const PruneObserver& go_on);

 private:
  void record(const queue::OperationAuthor& author, const PruneSummary& summary);

  db::Connection& connection_;
  PruneAges ages_;
  Moment before_;
  Moment contents_before_;
  int step_;
};

}  // namespace mailroom::prune
