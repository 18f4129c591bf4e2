#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accounts/batch_lookup.hpp"
#include "audit/operations.hpp"

namespace mailroom {

/// The record of the claim whose cursor was the first to reach a token.
struct Passing {
  std::int64_t batch = 0;
  std::int64_t at = 0;  ///< microseconds since 1970
  int expired = 0;  ///< how many tokens it passed over for which reason; of accounts a claim knows nothing
  int consumed = 0;
};

/// Where a token stands in a queue.
struct QueueStand {
  std::string queue{};
  std::int64_t cursor = 0;
  bool in_hole = false;           ///< below the cursor, and still looked for: a replay, or a late commit
  bool records_complete = false;  ///< the records reach back to before the token was made
  std::optional<Passing> passing{};
  bool missed = false;  ///< its id was passed before it was made
};

/// What the database knows of a token. Times are seconds since 1970.
struct TokenFacts {
  std::int64_t id = 0;
  bool exists = true;    ///< false for one that was removed, or never committed
  std::string action{};  ///< empty for one that does not exist; so are the others down to consumed_at
  std::string state{};   ///< `due`, `consumed`, `expired` or `wrong status`, now
  std::string status{};  ///< of its account
  std::int64_t account = 0;
  std::int64_t created_at = 0;
  std::int64_t expires_at = 0;
  std::optional<std::int64_t> consumed_at{};
  std::vector<BatchRecord> batches{};   ///< those that hold it, by id
  bool id_was_anothers = false;         ///< another token had its id before it was made
  std::vector<Operation> operations{};  ///< those that may concern it
  std::vector<QueueStand> queues{};     ///< the one that matters most first
};

enum class Outcome {
  handed_on,        ///< for certain
  maybe_handed_on,  ///< in a batch that was handed out before without an acknowledgement, or whose record
                    ///< does not say
  in_open_batch,    ///< leased; its line may have been written
  set_aside,        ///< its batch was given up after too many attempts
  left_out,         ///< in a batch, but not due, or unfit for a line, when that was written
  waiting,          ///< due, above the cursor
  waiting_not_due,  ///< above the cursor, and to be passed over
  waiting_again,    ///< below the cursor, and looked for
  passed_over,      ///< not due when the cursor reached it
  passed_by,        ///< an operator moved the cursor past it
  missed,           ///< its id was passed before it was made, so nobody looks for it
  not_recorded,     ///< the records do not reach back to it
  unexplained,      ///< below the cursor, and none of these
};

struct TokenFate {
  Outcome outcome = Outcome::unexplained;
  int times = 0;                       ///< in how many batches it was handed on for certain
  int maybe = 0;                       ///< and in how many perhaps
  std::optional<BatchRecord> batch{};  ///< the last one that tells the outcome
  std::optional<Outcome> next{};       ///< of one handed on: in_open_batch, waiting or waiting_again
  std::string queue{};                 ///< where it waits or was passed
  std::string reason{};  ///< of passed_over and left_out: `expired`, `consumed`, `wrong status` or `invalid`
  bool reason_certain = false;  ///< recorded, and not concluded from how things are now
  std::optional<Passing> passing{};
  std::optional<Operation> operation{};  ///< of passed_by
};

/// What became of a token.
TokenFate judge_fate(const TokenFacts& facts);

/// How a batch stands to `token`, one of its own or with an id that it had: handed_on, maybe_handed_on,
/// left_out, in_open_batch or set_aside. `cut` = tokens were taken out of it while it was open, so that its
/// counts are of more.
Outcome judge_batch(const BatchRecord& batch, std::int64_t token, bool cut);

/// `handed on`, `maybe handed on`, `in open batch` and so on: the words of the JSON output.
const char* outcome_name(Outcome outcome);

}  // namespace mailroom
