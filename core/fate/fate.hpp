// The one judge of what became of a token in a queue. Pure: audit gives it the records of one token, and
// reconcile those that a range of ids has in common.
//
// It does not read records, does not say why an attempt failed (bounce, delivery), and does not decide what
// is to be done about it (health).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "fate/outcome.hpp"

namespace mailroom::fate {

/// False for a record that is older than the token: it is of another token, which had its id before. A
/// creation has the second in which its transaction began.
constexpr bool can_be_of(std::int64_t created_second, std::int64_t recorded_second) {
  return created_second <= recorded_second;
}

/// A batch that has the token.
struct HoldingBatch {
  enum class State { open, emitted, dead };

  State state = State::open;
  int attempts = 1;              ///< how often it was leased
  std::int64_t leased_at = 0;    ///< by its first attempt, in microseconds since 1970
  std::int64_t ended_at = 0;     ///< when it was acknowledged or given up, likewise
  bool is_skipped = false;       ///< its consumer skipped the token at the last attempt
  bool is_certain = true;        ///< false: it was acknowledged, but perhaps without this token
  bool is_by_sender = false;     ///< of `mailroom send`, which records an outcome of each token
  bool is_shared = false;        ///< two sessions had it at the same time
  bool is_out_of_reach = false;  ///< open, but no claim looks for it
  std::string_view queue{};      ///< where the evidence is of several queues
};

/// An operation that let a queue emit the token again: a rewind, a replay, or the creation of the queue.
struct Repetition {
  std::int64_t operation = 0;  ///< its id
  std::int64_t at = 0;         ///< in microseconds since 1970
  std::string_view queue{};
};

/// Where a queue will still find the token.
enum class TokenPlace { none, above_cursor, in_gap, in_replay };

/// What brought the cursor past a token that no batch has.
enum class PassedBy {
  nothing,
  claim,
  move,     ///< of the cursor, by an operator
  untaken,  ///< a claim, when the queue did not take its action yet; or the queue began after it
};

/// The delivery of the token that is on record.
struct RecordedDelivery {
  Outcome last = Outcome::unknown;    ///< one of delivery_outcomes
  bool was_accepted = false;          ///< by the last attempt or an earlier one
  bool will_be_tried = false;         ///< it has a time for its next attempt
  std::optional<Outcome> reported{};  ///< one of reported_outcomes: what came back after it was accepted
  bool has_batch = true;              ///< a batch on record has the token, or may have had it
};

/// What is on record of a token in a queue.
struct Evidence {
  std::vector<HoldingBatch> batches{};    ///< in the order of their claims
  std::vector<Repetition> repetitions{};  ///< in the order of their time
  TokenPlace place = TokenPlace::none;
  bool is_due = true;         ///< a claim that finds it at its place would emit it
  bool is_cancelled = false;  ///< its message was cancelled or replaced before its queue came to it
  bool is_over = false;       ///< it has expired or is consumed: whatever finds it at its place will skip it
  std::optional<RecordedDelivery> delivery{};
  PassedBy passed_by = PassedBy::claim;
  bool is_missed = false;   ///< created after that
  bool is_recorded = true;  ///< false: batches of its time may be gone
  bool was_unfit = false;   ///< expired or consumed when the claim passed it, as the claim has counted
};

/// What is wrong with a token that is_fault().
enum class Fault {
  none,
  shared,
  unasked,
  without_outcome,
  without_batch,
  never_tried,
  out_of_reach,
  not_passed,
  late,
  lost,
};

/// `due when the cursor passed it, and in no batch`; empty for none.
const char* fault_text(Fault fault);

/// What became of a token.
struct Fate {
  Outcome outcome = Outcome::unexplained;
  Fault fault = Fault::none;
  int times = 0;                       ///< how many batches certainly emitted it
  int maybe = 0;                       ///< how many others may have
  std::optional<std::size_t> batch{};  ///< place in Evidence::batches of the one that decides, or of the last
  /// Of a token that was emitted or delivered, and will be again: where it is. Of a skipped or
  /// cancelled one that its queue has not come to yet: likewise.
  std::optional<Outcome> next{};
  std::vector<std::int64_t> asked_for_by{};  ///< the operations that explain repetitions
};

Fate judge_fate(const Evidence& evidence);

}  // namespace mailroom::fate
