#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "queue/queue_status.hpp"

namespace mailroom {

/// Ids from `first` to before `end`, each of which stands for `weight` ids.
struct IdSample {
  std::int64_t first = 0;
  std::int64_t end = 0;
  double weight = 1;
};

/// What to read of the ids from `first` to `last`: some 3,000 at the most, however many there are, and the
/// more densely the newer they are, since tokens expire. The newest 1,024 are read completely.
std::vector<IdSample> plan_samples(std::int64_t first, std::int64_t last);

/// Where a queue stands, as mailroom_queue_state tells it.
struct QueuePosition {
  std::string queue;
  std::int64_t now = 0;  ///< seconds since 1970
  std::int64_t cursor = 0;
  std::int64_t newest = 0;
  std::int64_t open_from = 0;
  std::string hole_ids;  ///< a bigint[] as text
};

/// Within the caller's transaction. Exact up to 5,000 tokens above the cursor and 5,000 ids in open
/// batches, in holes and in replays each; beyond that an estimate.
WaitingTokenCount count_waiting_tokens(pqxx::transaction_base& transaction, const QueuePosition& position);

}  // namespace mailroom
