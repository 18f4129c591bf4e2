// The state of a queue at one moment, as status, doctor and the metrics show it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "config/settings.hpp"
#include "db/connection.hpp"
#include "queue/home.hpp"
#include "queue/preconditions.hpp"
#include "queue/queue_definition.hpp"
#include "status/collector_process.hpp"
#include "status/delivery_status.hpp"
#include "status/pending_tokens.hpp"
#include "status/recent_batches.hpp"
#include "status/shadows.hpp"
#include "status/trigger_status.hpp"
#include "status/unmailed.hpp"
#include "status/unsettled.hpp"

namespace mailroom::status {

/// True if collect.queue is set, by a flag or otherwise.
bool names_queues(const config::Settings& settings);

/// The queues that a command shows: those of collect.queue or, if it is not set, all of the database, by
/// priority and name. Not empty: a database without a queue has the default of collect.queue, which is then
/// unknown.
std::vector<std::string> shown_queues(db::Connection& connection, const config::Settings& settings);

/// A session of the server, as far as the current role may see it.
struct ServerSession {
  int pid = 0;  ///< of the backend
  std::string
      application;  ///< for a collector `mailroom collect USER@HOST:PID` or `mailroom send …`, of its process
  std::string user;
  std::string address;    ///< of the client; empty on a local socket
  bool readable = false;  ///< false: another user's session; without pg_monitor all below is unknown
  std::string state;      ///< `active`, `idle in transaction`, …
  std::string wait;       ///< what an active session waits for, such as `Lock/advisory`; empty if nothing
  std::string command;    ///< first word of its last statement; the rest may contain secrets
  std::optional<Milliseconds> connected_for;
  std::optional<Milliseconds> transaction_age;
  std::optional<Milliseconds> silent_for;  ///< how long it has been in this state
};

struct AttachedCollector {
  ServerSession session;
  std::optional<std::string> queue;  ///< nullopt with several queues, if a foreign lock hides which it serves
  std::string key{};                 ///< fingerprint of the signing key; empty if unknown
  ProcessSight process = ProcessSight::unknown;
};

/// A batch that is leased and neither acknowledged nor dead-lettered.
struct OpenBatch {
  std::int64_t id = 0;
  std::int64_t tokens = 0;
  int attempts = 0;
  int collector = 0;  ///< backend pid
  std::string claimed_by;
  Milliseconds age{};
  bool session_lives = false;
  ProcessSight process = ProcessSight::unknown;
};

/// An open transaction for which a gap may wait.
struct GapHolder {
  ServerSession session;       ///< pid 0 for a prepared transaction, whose transaction_age is then its age
  std::string gid;             ///< of a prepared transaction
  bool writes_tokens = false;  ///< false: it inserts no tokens, and only delays the deletion of empty gaps
  std::int64_t ids = 0;        ///< in the gaps that it may fill
};

/// The session that holds the lock under which claims are made.
struct QueueLockHolder {
  ServerSession session;
  std::optional<Milliseconds> longest_wait;  ///< of the sessions that wait for it; nullopt if none does
};

/// The queue of notifications, which all databases of the server share. While it is full, every transaction
/// that notifies fails, and so does every INSERT into accounts.
struct NotificationQueue {
  static constexpr double worth_a_look = 0.01;

  double usage = 0;  ///< from 0 to 1
  /// Those of one of which it waits to be read, the oldest first; only if the usage is worth a look.
  std::vector<ServerSession> open_transactions{};
};

struct QueueStatus {
  std::string queue;
  queue::QueueRecord record;
  Moment now{};                   ///< the server's clock, in whole milliseconds
  std::string role;               ///< the current role, quoted for SQL
  std::string schema = "public";  ///< the current schema, quoted for SQL
  std::string host;               ///< the host that this program runs on
  std::string home_problem{};     ///< why nothing is sent from this database; empty if mails are
  std::vector<queue::ForeignConsumer> foreign{};  ///< connected consumers that may not serve this database
  bool on_standby = false;  ///< collectors and locks are on the primary, and not visible here
  std::int64_t cursor = 0;
  std::int64_t newest = 0;                             ///< the highest id that was drawn
  std::vector<queue::TableSequence> sequences_behind;  ///< their tables
  TriggerStatus triggers;
  std::vector<Shadow> shadows{};
  LostMessages lost{};                      ///< of the last day, of the newest 10,000
  std::int64_t accounts_without_token = 0;  ///< likewise
  PendingTokens pending;
  ScheduledMessages scheduled;
  std::string
      may_not_release;  ///< a role of a consumer that may not make tokens of those; quoted, empty for none
  std::vector<AttachedCollector> collectors;  ///< of this queue, or of an unknown one
  std::vector<ServerSession> elsewhere;       ///< consumers of this database that serve other queues only
  std::optional<LastClaim> last_claim;
  std::vector<OpenBatch> open_batches;
  std::vector<DeadBatch> dead;  ///< within a day, among the newest 5,000 batches; newest first
  std::optional<WentBack> went_back;
  std::optional<QueueLockHolder> lock;
  std::optional<ServerSession>
      longest_commit;  ///< the session of this database that waits longest for a standby
  std::vector<ServerSession> foreign_locks;  ///< sessions that hold a mailroom lock and are not collectors
  NotificationQueue notifications;
  std::int64_t gap_ids = 0;
  std::int64_t replay_ids = 0;
  std::vector<GapHolder> gap_holders;  ///< those that write tokens first, then by age
  RecentEmissions emissions;
  std::vector<RecentKey> recent_keys;  ///< of the newest 5,000 batches
  /// Before they were emitted or accepted, and not because an operator went back.
  ExpiredTokens expired;
  DeliveryStatus deliveries;
  CameBack came_back{};
  std::vector<UntakenAction> untaken;  ///< of the database
  std::optional<OtherQueue> other;     ///< if this schema never had a token

  /// How long the oldest pending token has waited; nullopt if none waits.
  std::optional<Milliseconds> lag() const;
};

/// Reads the status in one read-only snapshot, at a cost that does not depend on the number of tokens behind
/// the cursor. Runs a transaction of its own. Throws DatabaseError MR001 for an unknown queue, and
/// Error(locked) when a table is locked for more than two seconds.
QueueStatus read_queue_status(db::Connection& connection, const std::string& queue);

/// Counts the pending tokens alone, with the same promises.
PendingTokens read_pending_tokens(db::Connection& connection, const std::string& queue);

/// The same within the caller's transaction, which must have run no statement yet. Throws DatabaseError 55P03
/// when a table is locked.
QueueStatus read_queue_status_within(pqxx::transaction_base& transaction, const std::string& queue);

}  // namespace mailroom::status
