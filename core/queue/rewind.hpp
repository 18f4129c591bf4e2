#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom {

/// Where the cursor is to stand: tokens with larger ids are handed on (again).
struct RewindTarget {
  enum class Kind { id, time, start, end };
  Kind kind = Kind::start;
  std::int64_t value = 0;  ///< the id, or seconds since 1970; unused for start and end
};

/// What a replay is narrowed to. Empty: nothing is left out, and the cursor moves.
struct ReplayFilter {
  std::string action;                   ///< activation, password_recovery, or empty for both
  std::vector<std::int64_t> accounts;   ///< or empty for all
  std::optional<std::int64_t> until{};  ///< those that were created before, in seconds since 1970
  bool empty() const { return action.empty() && accounts.empty() && !until; }
};

struct RewindRequest {
  std::string queue;
  RewindTarget target;
  ReplayFilter filter;
  std::int64_t extend_seconds = 0;  ///< what expired tokens are given from now on; 0 leaves them expired
  std::int64_t max_replay = 0;      ///< refuse to hand on more than so many
};

/// Tokens of one kind in the range.
struct TokenTally {
  std::int64_t count = 0;
  std::int64_t emitted_before = 0;  ///< of them, those that an acknowledged batch held
};

/// What a rewind would do, at the moment of asking.
struct RewindPlan {
  std::int64_t cursor_before = 0;
  std::int64_t cursor_after = 0;
  std::int64_t range_from = 0;  ///< the range is (from, to]: between the cursors, or what a filter looks at
  std::int64_t range_to = 0;
  std::int64_t newest = 0;  ///< the last id that the sequence gave out; below the cursor after a TRUNCATE
  bool narrowed = false;    ///< single tokens are handed on, and the cursor stays
  TokenTally deliverable;   ///< as they are
  TokenTally revived;       ///< expired, and given a new expiry
  TokenTally expired;       ///< and staying so
  TokenTally consumed;
  TokenTally wrong_status;

  bool is_forward() const { return cursor_after > cursor_before; }
  bool changes_nothing() const;
  /// The tokens that would be handed on.
  std::int64_t replayed() const;
};

/// Reads what `request` would do, and changes nothing. Throws DatabaseError with exit code 3 for an unknown
/// queue, Error(usage) for a target beyond the newest token, for a filter with a target that lies ahead, and
/// for an end that does not come after the beginning.
RewindPlan plan_rewind(Connection& connection, const RewindRequest& request);

/// Who does it and why, for the record.
struct OperationAuthor {
  std::string actor;
  std::string reason;  ///< may be empty
};

/// Carries out `plan` under the queue's lock, in one transaction of its own, records it and wakes those who
/// listen on `channel`. Collectors may run: the tokens are counted anew, and the call refuses with
/// Error(declined) when they have become more than `max_replay`. Returns how many are handed on.
std::int64_t carry_out_rewind(Connection& connection, const RewindRequest& request, const RewindPlan& plan,
                              const OperationAuthor& author, const std::string& channel);

/// Within the caller's transaction: makes its operations carry the author.
void set_author(pqxx::transaction_base& transaction, const OperationAuthor& author);

/// Within the caller's transaction, after set_author: hands on `tokens` again where the cursor has passed
/// them, without moving it, and wakes those who listen on `channel`. Returns how many.
std::int64_t replay_tokens(pqxx::transaction_base& transaction, const std::string& queue,
                           const std::vector<std::int64_t>& tokens, const std::string& details,
                           const std::string& channel);

}  // namespace mailroom
