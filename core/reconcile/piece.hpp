// A fact that the records state of many ids at once, since reconcile compares ranges and not tokens.
#pragma once

#include <cstdint>
#include <string>

namespace mailroom {

/// What the record says of a range of ids.
enum class PieceKind {
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

enum class BatchState { open, emitted, dead };

/// A range of ids, and the batch or the operation that names it. Times are microseconds since 1970.
struct Piece {
  std::int64_t first = 0;
  std::int64_t end = 0;  ///< exclusive
  PieceKind kind = PieceKind::claim;
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

  bool is_batch() const { return kind == PieceKind::claim || kind == PieceKind::held; }
  bool is_passing() const { return kind == PieceKind::claim || kind == PieceKind::window; }
  bool operator==(const Piece&) const = default;
};

/// Whole seconds since 1970, as tokens have them.
constexpr std::int64_t second_of(std::int64_t microseconds) {
  return microseconds / 1'000'000 - (microseconds % 1'000'000 < 0 ? 1 : 0);
}

}  // namespace mailroom
