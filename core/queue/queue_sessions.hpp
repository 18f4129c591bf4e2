#pragma once

#include <optional>
#include <string>
#include <vector>

#include "queue/queue_status.hpp"

namespace mailroom {

/// Each within the caller's transaction.

/// The sessions of this database that hold a collector's lock, but for those of other queues.
std::vector<AttachedCollector> find_collectors(pqxx::transaction_base& transaction, const std::string& queue);

/// Who holds the lock of the queue's claims at this moment: mostly nobody.
std::optional<QueueLockHolder> find_queue_lock(pqxx::transaction_base& transaction, const std::string& queue);

/// The sessions of this database that hold a lock of ours and are no collectors.
std::vector<ServerSession> find_foreign_locks(pqxx::transaction_base& transaction);

/// The transactions in progress for which the holes `hole_ids` (a bigint[] as text) may wait.
std::vector<HoleHolder> find_hole_holders(pqxx::transaction_base& transaction, const std::string& hole_ids);

}  // namespace mailroom
