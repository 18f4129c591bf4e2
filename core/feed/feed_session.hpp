#pragma once

#include <functional>
#include <string>

#include "db/connection.hpp"

namespace mailroom {

/// A read-only session: each of its transactions is READ ONLY and REPEATABLE READ.
class FeedSession {
 public:
  using Check = std::function<void(Connection&)>;
  /// Connects and calls `check_schema`. Throws Error(configuration) if a pooler shares the session.
  FeedSession(const std::string& conninfo, const Check& check_schema);

  /// Listens on `channel`, except on a standby, which has no notifications.
  void follow(const std::string& channel);

  /// Identifies the cluster and the database, for comparison after a reconnect.
  std::string identity();

  struct Moment {
    std::string snapshot;  ///< unchanged if no transaction has ended since
    std::int64_t now = 0;  ///< the server's clock, in seconds since 1970
  };
  Moment moment();

  Connection& connection() { return connection_; }

 private:
  Connection connection_;
};

}  // namespace mailroom
