// Finds out whether a pooler such as PgBouncer takes a session's locks and settings away.
#pragma once

#include <optional>
#include <string>

#include "db/connection.hpp"

namespace mailroom::db {

/// The pooler between a connection and the server, by pool mode: it assigns a server process for each
/// session, each transaction or each statement.
enum class PoolerKind { none, session, transaction, statement };

/// Backend pids as observed; without a shared server process the pid of a session never changes.
struct PoolerFacts {
  int announced = 0;           ///< from the start of the connection
  int first = 0;               ///< from pg_backend_pid()
  std::optional<int> other{};  ///< from pg_backend_pid() on a second connection; nullopt without an answer
  int again = 0;               ///< from pg_backend_pid() on the first connection after that
  bool allows_transactions = true;
};

/// If `announced` equals `first`, the other facts are ignored.
PoolerKind judge_pooler(const PoolerFacts& facts);

/// Detects a pooler. If the server is not connected directly, opens a second session with `target` for
/// `purpose`, for at most 1 s. Behind a pooler in session mode, gives `connection` its settings for good.
PoolerKind find_pooler(Connection& connection, const DatabaseTarget& target, const std::string& purpose);

/// `the connection goes through a pooler in transaction mode: …`, for a kind that shares server processes.
std::string pooler_text(PoolerKind kind);

/// The hint that goes with pooler_text().
extern const char* const pooler_hint;

/// A connection string for the server as the pooler reaches it; empty if this role may not see its address.
std::string direct_conninfo(Connection& connection);

/// For commands that use settings, prepared statements, locks or LISTEN. Throws Error(configuration) if a
/// pooler shares the server process of `connection`, before any of these reach other clients.
void require_own_session(Connection& connection, const DatabaseTarget& target, const std::string& purpose);

}  // namespace mailroom::db
