#pragma once

#include <array>
#include <functional>
#include <string>

#include "db/connection.hpp"
#include "feed/consumption_follower.hpp"
#include "feed/feed_snapshot.hpp"
#include "feed/id_follower.hpp"

namespace mailroom {

/// A session that reads: each of its transactions is READ ONLY and REPEATABLE READ, the server sees to it.
class FeedSession {
 public:
  using Check = std::function<void(Connection&)>;
  /// Connects, makes sure that no pooler shares the session, and lets `check_schema` have a look.
  FeedSession(const std::string& conninfo, const Check& check_schema);

  /// Subscribes to `channel`. Throws Error(failed) on a standby, which does not show who holds a sequence.
  void follow(const std::string& channel);

  /// The server's clock, in seconds since 1970.
  std::int64_t now();
  /// The cluster and the database in it, for comparison after a reconnect.
  std::string identity();
  SequencePositions sequence_positions();
  /// Who holds which of the sequences. Must be a moment between two snapshots: no transaction is open.
  std::array<SequenceHolders, 3> sequence_holders();
  /// `listed_after`: seconds that a transaction has to run to be among the running.
  ServerLook look(std::int64_t listed_after);
  /// Does `body(const FeedSnapshot&)` within a transaction of its own.
  template <typename Body>
  void in_snapshot(Body&& body) {
    connection_.transact([&](pqxx::work& transaction) { body(FeedSnapshot(transaction)); });
  }

  Connection& connection() { return connection_; }

 private:
  Connection connection_;
};

}  // namespace mailroom
