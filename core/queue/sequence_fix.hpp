#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "queue/rewind.hpp"

namespace mailroom {

/// The tokens that a queue has missed: their ids had been passed before they were made.
struct MissedTokens {
  std::string queue;
  std::int64_t cursor = 0;
  std::int64_t due = 0;
  std::int64_t revived = 0;  ///< expired, and given a new expiry
  std::int64_t expired = 0;  ///< and staying so
  std::int64_t wrong_status = 0;

  std::int64_t to_emit() const { return due + revived; }
};

/// How to put the sequence of tokens ahead of every cursor and token, so that no id comes again. The cursors
/// stay, and what the queues have missed is emitted.
struct SequenceFix {
  std::int64_t sequence_before = 0;  ///< the last id that it gave out
  std::int64_t sequence_after = 0;
  std::int64_t newest_token = 0;     ///< the highest id in the table
  std::vector<MissedTokens> queues;  ///< all of them, by name

  std::int64_t to_emit() const;
  bool changes_nothing() const { return sequence_after == sequence_before && to_emit() == 0; }
};

/// Reads what is to be done, and changes nothing. Expired tokens count as revived if `extend_seconds` is
/// above 0.
SequenceFix plan_sequence_fix(Connection& connection, std::int64_t extend_seconds);

/// Does it in one transaction, under the locks of all queues and against whoever inserts tokens, so that none
/// is made meanwhile; records it for each queue, and wakes those who listen on `channel`. Throws
/// Error(locked) when a transaction with tokens stays open for 5 s. Returns what was done.
SequenceFix carry_out_sequence_fix(Connection& connection, std::int64_t extend_seconds,
                                   const OperationAuthor& author, const std::string& channel);

}  // namespace mailroom
