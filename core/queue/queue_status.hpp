#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// A session of the server, as far as the user who asks may look at it.
struct ServerSession {
  int pid = 0;              ///< of the backend
  std::string application;  ///< for our own `mailroom collect@HOST:PID`, of the process
  std::string user;
  std::string address;    ///< of the client; empty on a local socket
  bool readable = false;  ///< false: of another user, and without pg_monitor all below is unknown
  std::string state;      ///< `active`, `idle in transaction`, …
  std::string wait;       ///< `Lock/advisory`: what an active one waits for; empty for nothing
  std::string command;    ///< first word of its last statement, whose rest may hold secrets
  std::optional<Milliseconds> connected_for;
  std::optional<Milliseconds> transaction_age;
  std::optional<Milliseconds> silent_for;  ///< how long it has been in this state
};

struct AttachedCollector {
  ServerSession session;
  std::optional<std::string> queue;  ///< nothing when there are several and it has not claimed lately
  std::string key{};  ///< fingerprint of the key that it signs with; empty when it does not show
};

/// A batch that is handed out and neither acknowledged nor set aside.
struct OpenBatch {
  std::int64_t id = 0;
  std::int64_t tokens = 0;
  int attempts = 0;
  int collector = 0;  ///< backend pid
  std::string claimed_by;
  Milliseconds age{};
  bool session_lives = false;
};

struct SetAsideBatch {
  std::int64_t id = 0;
  std::int64_t tokens = 0;
  std::string claimed_by;
  Milliseconds age{};
};

/// A transaction that is not over, and that may be what a hole waits for.
struct HoleHolder {
  ServerSession session;       ///< pid 0 for a prepared transaction, whose transaction_age is then its age
  std::string gid;             ///< of a prepared transaction
  bool writes_tokens = false;  ///< false: a stranger, which only delays the forgetting of dead holes
  std::int64_t ids = 0;        ///< in the holes that it may fill
};

/// The session that holds the lock under which claims are made.
struct QueueLockHolder {
  ServerSession session;
  std::optional<Milliseconds> longest_wait;  ///< of those that want it; nothing when nobody does
};

/// Due tokens that are not acknowledged.
struct WaitingTokenCount {
  std::int64_t above_cursor = 0;
  std::int64_t in_open_batches = 0;
  std::int64_t in_holes = 0;   ///< committed late, and visible by now
  std::int64_t in_replay = 0;  ///< an operator wants them handed on again
  bool estimated = false;
  std::optional<std::int64_t> oldest_created_at;  ///< seconds since 1970
  bool oldest_estimated = false;                  ///< there may be an older one

  std::int64_t total() const { return above_cursor + in_open_batches + in_holes + in_replay; }
};

/// Who has claimed last, among the newest 5,000 batches.
struct LastClaim {
  std::string claimed_by;  ///< `mailroom collect@HOST:PID`
  Milliseconds age{};
};

/// What was acknowledged in the last minutes.
struct RecentEmissions {
  static constexpr std::int64_t bucket_seconds = 10;
  static constexpr std::size_t bucket_count = 30;

  std::vector<std::int64_t> tokens = std::vector<std::int64_t>(bucket_count, 0);  ///< newest first
  Milliseconds known{};  ///< how far back the records that were read reach, 5 min at the most

  std::int64_t total() const;
  double per_second() const;
};

struct QueueStatus {
  std::string queue;
  std::int64_t now = 0;     ///< the server's clock, in milliseconds since 1970
  std::string role;         ///< whose eyes these are, quoted as SQL wants it
  std::string host;         ///< from where they look
  bool on_standby = false;  ///< sessions and locks are those of the primary, and out of sight
  std::int64_t cursor = 0;
  std::int64_t newest = 0;  ///< the highest id that was drawn
  WaitingTokenCount waiting;
  std::vector<AttachedCollector> collectors;  ///< of this queue, and those that may be
  std::optional<LastClaim> last_claim;
  std::vector<OpenBatch> open_batches;
  std::vector<SetAsideBatch> set_aside;  ///< within a day, among the newest 5,000 batches; newest first
  std::optional<QueueLockHolder> lock;
  std::vector<ServerSession> foreign_locks;  ///< who holds a lock of ours without being a collector
  std::int64_t hole_ids = 0;
  std::int64_t replay_ids = 0;
  std::vector<HoleHolder> hole_holders;  ///< those that write tokens first, then by age
  RecentEmissions emissions;

  /// How long the oldest waiting token has waited; nothing when none waits.
  std::optional<Milliseconds> lag() const;
};

/// Reads all that above in one read-only snapshot, at a cost that does not depend on how many tokens lie
/// behind the cursor. Starts and ends a transaction of its own. Throws DatabaseError MR001 for an unknown
/// queue, and Error(locked) when a table is locked for more than two seconds.
QueueStatus read_queue_status(Connection& connection, const std::string& queue);

/// The same within the caller's transaction, which has done nothing yet; DatabaseError 55P03 for a lock.
QueueStatus read_queue_status_within(pqxx::transaction_base& transaction, const std::string& queue);

}  // namespace mailroom
