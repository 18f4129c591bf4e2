// How many tokens wait in a queue, at a cost that does not grow with a large backlog.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "status/queue_status.hpp"

namespace mailroom {

/// Ids from `first` to before `end`, each of which represents `weight` ids.
struct IdSample {
  std::int64_t first = 0;
  std::int64_t end = 0;
  double weight = 1;
};

/// Chooses which of the ids from `first` to `last` to read: about 3,000 at most, more densely the newer they
/// are, because tokens expire. Includes all of the newest 1,024.
std::vector<IdSample> plan_samples(std::int64_t first, std::int64_t last);

/// What mailroom_queue_state returns besides the cursor.
struct QueuePosition {
  std::int64_t open_from = 0;
  std::string gap_ids;  ///< a bigint[] as text
};

/// Runs within the caller's transaction, with the queue, time, cursor and newest id of `status`. Exact up to
/// 5,000 tokens above the cursor and 5,000 ids each in open batches, gaps and replays; beyond that an
/// estimate.
WaitingTokenCount count_waiting_tokens(pqxx::transaction_base& transaction, const QueueStatus& status,
                                       const QueuePosition& position);

}  // namespace mailroom
