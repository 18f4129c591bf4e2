// Emits tokens again, or skips them, by moving a queue's cursor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::replay {

/// The target of the cursor: tokens with larger ids are emitted (again).
struct RewindTarget {
  enum class Kind { id, time, start, end };
  Kind kind = Kind::start;
  std::int64_t id = 0;
  Moment time{};
};

struct RewindRequest {
  std::string queue;
  RewindTarget target;
  std::chrono::seconds extension{};  ///< new lifetime of expired tokens from now on; 0 leaves them expired
  std::int64_t max_replay = 0;       ///< refuse to emit more tokens than this
};

/// What was known of the mails of some tokens before they are emitted again.
struct SentBefore {
  std::int64_t accepted = 0;  ///< the receiver took it
  std::int64_t maybe = 0;     ///< it may have taken it
  std::int64_t emitted = 0;   ///< a batch without outcomes emitted it: only its reader knows

  SentBefore& operator+=(const SentBefore& other);
};

/// Tokens of one kind in the range.
struct TokenTally {
  std::int64_t count = 0;
  std::int64_t emitted_before = 0;  ///< those of them that an acknowledged batch held
  SentBefore before{};
};

/// What a rewind would do at this moment.
struct RewindPlan {
  std::int64_t cursor_before = 0;
  std::int64_t cursor_after = 0;
  std::int64_t range_from = 0;  ///< the range is (from, to]: between the cursors
  std::int64_t range_to = 0;
  std::int64_t newest = 0;  ///< the last id that the sequence assigned; below the cursor after a TRUNCATE
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
std::int64_t starting_cursor(db::Connection& connection, const RewindTarget& target);

/// Reads what `request` would do, and changes nothing. Throws DatabaseError with exit code 3 for an unknown
/// queue, and Error(usage) for a target beyond the newest token.
RewindPlan plan_rewind(db::Connection& connection, const RewindRequest& request);

/// Carries out `plan` under the queue's lock in a transaction of its own, records it and notifies `channel`.
/// Collectors may run meanwhile: the tokens are counted again. Throws Error(declined) when there are now more
/// than `max_replay`. Returns how many tokens are emitted.
std::int64_t carry_out_rewind(db::Connection& connection, const RewindRequest& request,
                              const RewindPlan& plan, const queue::OperationAuthor& author,
                              const std::string& channel);

/// Emits those of `tokens` again that the cursor has passed, without moving it, and notifies `channel`. Runs
/// within the caller's transaction, after set_author(). Returns how many tokens are emitted.
std::int64_t replay_tokens(pqxx::transaction_base& transaction, const std::string& queue,
                           const std::vector<std::int64_t>& tokens, const std::string& details,
                           const std::string& channel);

}  // namespace mailroom::replay
