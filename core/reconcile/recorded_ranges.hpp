// What the records state of many ids at once. Reconcile compares such ranges, not tokens. An example:
//
//     ids                1   2   3   4   5   6   7   8   9   10
//     batch 1, emitted   |- claim -|                               took all that its claim passed
//     rewind by alice            |covered                          moved the cursor from 3 back to 2
//     batch 2, emitted           |---- window ----|                passed 3 to 7, and took all of them
//                                |-held-|   |-held-|               but 5, which had expired
//     batch 3, open                                |-claim-|
//     above the cursor                                      |-above
//
// stretches.hpp cuts these where one of them begins or ends. The tokens of a stretch have the same records:
// 1 and 2 were emitted, 3 was emitted again, since alice wanted that, 4, 6 and 7 were emitted, 5 was skipped,
// 8 and 9 are leased, and 10 waits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "fate/fate.hpp"
#include "reconcile/claim_record.hpp"

namespace mailroom::reconcile {

/// What the record says of a range of ids. The SQL has these numbers.
enum class RangeKind {
  claim,    ///< a batch took all ids that its claim passed
  window,   ///< a claim passed them: those of them that are in no batch were skipped
  held,     ///< a batch has them
  skipped,  ///< the consumer of a batch skipped them
  gap,      ///< below the cursor, and in a gap now
  replay,   ///< in the gap of a replay now
  above,    ///< above the cursor
  covered,  ///< an operation moved the cursor over them, or replayed them
  cut,      ///< a rewind or a replay took them out of an open batch, which may have been written
  written,  ///< the output of a consumer has them
  begun,    ///< a queue was created with its cursor at or above them
};

using BatchState = fate::HoldingBatch::State;

/// A range of ids, and the batch or the operation that names it. Times are microseconds since 1970.
struct RecordedRange {
  std::int64_t first = 0;
  std::int64_t end = 0;  ///< exclusive
  RangeKind kind = RangeKind::claim;
  std::int64_t source = 0;     ///< id of the batch or of the operation; 0 for neither
  std::int64_t leased_at = 0;  ///< by the first attempt
  std::int64_t ended_at = 0;   ///< when it was acknowledged or dead-lettered; 0 while it is open
  BatchState state = BatchState::open;
  int attempts = 1;
  bool is_short = false;       ///< acknowledged with fewer tokens than it has ids
  bool lives_on = false;       ///< a session from which it was taken over has claimed since
  bool by_sender = false;      ///< of `mailroom send`
  std::int64_t emitted = 0;    ///< tokens that the batch counts
  std::int64_t skipped = 0;    ///< tokens that its claim skipped, as it counted
  std::int64_t batch_end = 0;  ///< after the last id of the batch or of its claim
  std::string mask{};          ///< of `held`: a digit for each id, 1 for those of the batch; empty for all

  bool is_batch() const { return kind == RangeKind::claim || kind == RangeKind::held; }
  bool is_passing() const { return kind == RangeKind::claim || kind == RangeKind::window; }
  /// True if a batch has the ids, whether it emitted or skipped them.
  bool is_of_batch() const { return is_batch() || kind == RangeKind::skipped; }
  bool operator==(const RecordedRange&) const = default;
};

/// Whole seconds since 1970, as tokens have them.
constexpr std::int64_t second_of(std::int64_t microseconds) {
  return microseconds / 1'000'000 - (microseconds % 1'000'000 < 0 ? 1 : 0);
}

/// Calls `each` with every range of the queue's record, ordered by first id. Reads them within the caller's
/// transaction by a cursor, which the server sorts, on disk if there are many; `each` may run statements.
void read_recorded_ranges(pqxx::transaction_base& transaction, const ClaimRecord& record,
                          const std::function<void(RecordedRange)>& each);

}  // namespace mailroom::reconcile
