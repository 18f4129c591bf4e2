#pragma once

#include <optional>
#include <string>

#include "db/connection.hpp"

namespace mailroom {

/// What stands between a connection and its server process: one that gives each session a process of its own,
/// or each transaction, or each statement, the one that is free.
enum class PoolerKind { none, session, transaction, statement };

/// Backend pids, of which a session of its own has the same one throughout.
struct PoolerFacts {
  int announced = 0;           ///< what the connection was told when it began
  int first = 0;               ///< what the server says
  std::optional<int> other{};  ///< what it says to a second connection afterwards; nothing if it says nothing
  int again = 0;               ///< what it says to the first one thereafter
  bool allows_transactions = true;
};

/// All but `announced` and `first` count only where these two differ.
PoolerKind judge_pooler(const PoolerFacts& facts);

/// Finds out what is between. A second session, made with `conninfo` for `purpose`, is needed only where it
/// is not the server itself; it is waited for a second at the most.
PoolerKind find_pooler(Connection& connection, const std::string& conninfo, const std::string& purpose);

/// `a pooler in transaction mode is between: …`, of a kind whose sessions share their server processes.
std::string pooler_text(PoolerKind kind);

/// What can be done about it, in words.
extern const char* const pooler_hint;

/// A connection string of the server as the pooler reaches it; empty when this role may not know.
std::string direct_conninfo(Connection& connection);

/// For what sets, prepares, locks or listens: throws Error(configuration) when `connection` is no session of
/// its own, before any of that is left behind with a server process that others get.
void require_own_session(Connection& connection, const std::string& conninfo, const std::string& purpose);

}  // namespace mailroom
