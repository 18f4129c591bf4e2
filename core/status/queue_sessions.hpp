// The sessions that matter to a queue: collectors, lock holders, and those for which gaps wait.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "status/queue_status.hpp"

namespace mailroom::status {

/// Formats an age for people, in its two largest units: `2d4h`, `4m12s`, `850ms`.
std::string age_text(Milliseconds age);

/// Identifies a session: `pid 4567 (psql, user alice)`.
std::string session_text(const ServerSession& session);
/// What a session does, as far as it is visible.
std::string activity_text(const ServerSession& session);

// All functions run within the caller's transaction.

struct ConnectedCollectors {
  std::vector<AttachedCollector> here;   ///< of the queue, or of an unknown one
  std::vector<ServerSession> elsewhere;  ///< known to serve other queues only
};

/// The collectors connected to this database.
ConnectedCollectors find_collectors(pqxx::transaction_base& transaction, const std::string& queue);

/// The session that holds the lock of the queue's claims at this moment; usually nullopt.
std::optional<QueueLockHolder> find_queue_lock(pqxx::transaction_base& transaction, const std::string& queue);

/// The session of this database, an application's too, whose commit has waited longest for a synchronous
/// standby.
std::optional<ServerSession> find_longest_commit(pqxx::transaction_base& transaction);

/// The session, of any database of the server, that holds the lock under which transactions that notify
/// commit.
std::optional<ServerSession> find_notifier(pqxx::transaction_base& transaction);

/// The sessions of this database that hold a mailroom lock and are not collectors.
std::vector<ServerSession> find_foreign_locks(pqxx::transaction_base& transaction);

/// How full the server's queue of notifications is. Not on a standby.
NotificationQueue read_notification_queue(pqxx::transaction_base& transaction);

/// The transactions in progress for which the gaps `gap_ids` (a bigint[] as text) may wait.
std::vector<GapHolder> find_gap_holders(pqxx::transaction_base& transaction, const std::string& gap_ids);

}  // namespace mailroom::status
