// Emits tokens again, or skips them, by moving a queue's cursor or replaying single tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "queue/operation_author.hpp"

namespace mailroom {

/// The target of the cursor: tokens with larger ids are emitted (again).
struct RewindTarget {
  enum class Kind { id, time, start, end };
  Kind kind = Kind::start;
  std::int64_t id = 0;
  Moment time{};
};

/// Narrows a replay. Empty: all tokens are replayed, and the cursor moves.
struct ReplayFilter {
  std::string action;                  ///< activation, password_recovery, or empty for both
  std::vector<std::int64_t> accounts;  ///< empty for all
  std::optional<Moment> until{};       ///< only tokens created before
  /// Only tokens with this state in mailroom_deliveries, or empty for all. Not those that a batch in flight,
  /// a replay or a gap holds, since they have no outcome yet. `expired` includes expired tokens that no batch
  /// has emitted.
  std::string outcome{};
  bool empty() const { return action.empty() && accounts.empty() && !until && outcome.empty(); }
};

struct RewindRequest {
  std::string queue;
  RewindTarget target;
  ReplayFilter filter;
  std::chrono::seconds extension{};  ///< new lifetime of expired tokens from now on; 0 leaves them expired
  std::int64_t max_replay = 0;       ///< refuse to emit more tokens than this
};

/// Tokens of one kind in the range.
struct TokenTally {
  std::int64_t count = 0;
  std::int64_t emitted_before = 0;  ///< those of them that an acknowledged batch held
};

/// What a rewind would do at this moment.
struct RewindPlan {
  std::int64_t cursor_before = 0;
  std::int64_t cursor_after = 0;
  std::int64_t range_from = 0;  ///< the range is (from, to]: between the cursors, or up to the filter's end
  std::int64_t range_to = 0;
  std::int64_t newest = 0;  ///< the last id that the sequence assigned; below the cursor after a TRUNCATE
  bool narrowed = false;    ///< single tokens are emitted, and the cursor stays
  TokenTally deliverable;   ///< due without a change
  TokenTally revived;       ///< expired, will get a new expiry
  TokenTally expired;       ///< stay expired
  TokenTally consumed;
  TokenTally wrong_status;
  /// The tokens that wait for another attempt, which a rewind forward does not skip; 0 for other rewinds.
  std::int64_t deferred = 0;

  bool is_forward() const { return cursor_after > cursor_before; }
  bool changes_nothing() const;
  /// The tokens that would be emitted.
  std::int64_t replayed() const;
};

/// The cursor of a new queue that emits the tokens after `target`.
std::int64_t starting_cursor(Connection& connection, const RewindTarget& target);

/// Reads what `request` would do, and changes nothing. Throws DatabaseError with exit code 3 for an unknown
/// queue, Error(usage) for a target beyond the newest token, and for a filter with a target ahead of the
/// cursor.
RewindPlan plan_rewind(Connection& connection, const RewindRequest& request);

/// Carries out `plan` under the queue's lock in a transaction of its own, records it and notifies `channel`.
/// Collectors may run meanwhile: the tokens are counted again. Throws Error(declined) when there are now more
/// than `max_replay`. Returns how many tokens are emitted.
std::int64_t carry_out_rewind(Connection& connection, const RewindRequest& request, const RewindPlan& plan,
                              const OperationAuthor& author, const std::string& channel);

/// Emits those of `tokens` again that the cursor has passed, without moving it, and notifies `channel`. Runs
/// within the caller's transaction, after set_author(). Returns how many tokens are emitted.
std::int64_t replay_tokens(pqxx::transaction_base& transaction, const std::string& queue,
                           const std::vector<std::int64_t>& tokens, const std::string& details,
                           const std::string& channel);

}  // namespace mailroom
