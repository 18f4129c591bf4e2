// Sets sequences ahead of cursors and tables, and emits what the queues have missed meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "queue/preconditions.hpp"
#include "replay/rewind.hpp"

namespace mailroom::replay {

/// The tokens that a queue has missed: its cursor had passed their ids before they were created.
struct MissedTokens {
  std::string queue;
  std::int64_t cursor = 0;
  std::int64_t due = 0;
  std::int64_t revived = 0;  ///< expired, will get a new expiry
  std::int64_t expired = 0;  ///< stay expired
  std::int64_t wrong_status = 0;

  std::int64_t to_emit() const { return due + revived; }
};

/// A plan that advances the token sequence to the highest cursor or token, and every other sequence to the
/// highest id of its table, so that no id repeats, and emits the tokens that the queues have missed. The
/// cursors stay.
struct SequenceFix {
  std::int64_t sequence_before = 0;  ///< the last id that it assigned
  std::int64_t sequence_after = 0;
  std::int64_t newest_token = 0;     ///< the highest id in the table
  std::vector<MissedTokens> queues;  ///< all of them, by name
  bool is_complete = true;           ///< false: there were too many new tokens to look for missed ones
  std::vector<queue::TableSequence> others{};  ///< the sequences of the other tables that are behind

  std::int64_t to_emit() const;
  /// False if only other sequences are behind.
  bool concerns_tokens() const { return sequence_after != sequence_before || to_emit() > 0; }
  bool changes_nothing() const { return !concerns_tokens() && others.empty(); }
};

/// Plans the fix in a transaction of its own, and changes nothing. Expired tokens count as revived if
/// `extension` is above 0.
SequenceFix plan_sequence_fix(db::Connection& connection, std::chrono::seconds extension);

/// Plans it, but looks for missed tokens only if few tokens were created within the hour, or since the last
/// claim.
SequenceFix check_sequence(db::Connection& connection);

/// Carries out the fix in a transaction of its own, with all queues and inserts into tokens locked, records
/// it for each queue, and notifies `channel`. The other sequences come first, since the record needs them,
/// and they stay ahead if the rest fails. Throws Error(locked) when a transaction that writes to tokens stays
/// open for 5 s, and Error(failed), which names the owner of the tables, to a role that may not do it.
/// Returns what was done.
SequenceFix carry_out_sequence_fix(db::Connection& connection, std::chrono::seconds extension,
                                   const queue::OperationAuthor& author, const std::string& channel);

}  // namespace mailroom::replay
