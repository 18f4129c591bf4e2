// Keeps a simulation going through a restart of the server.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// A connection that reconnects when it is lost, for example in a server restart. If it is lost during a
/// transaction, the outcome of that transaction is unknown.
class LastingConnection {
 public:
  struct Ways {
    std::function<std::unique_ptr<Connection>()> connect;
    Milliseconds patience{};      ///< throw the loss after this time without a connection
    std::function<bool()> go_on;  ///< called every few milliseconds meanwhile; false: throw the loss
    std::function<void(const std::string& reason)> lost;  ///< called when the connection is lost …
    std::function<void()> back;                           ///< … and after a reconnect
  };

  /// Begins with `connection`.
  LastingConnection(std::unique_ptr<Connection> connection, Ways ways)
      : connection_(std::move(connection)), ways_(std::move(ways)) {}

  /// Returns the result of `work(Connection&)`, or, if the connection is lost meanwhile, that of
  /// `again(Connection&)` on a new connection. `again` must check whether `work` was committed. Throws
  /// ConnectionLost after `patience` or when `go_on` returns false.
  template <typename Work, typename Again>
  auto run(Work&& work, Again&& again) -> decltype(work(std::declval<Connection&>())) {
    for (bool is_first = true;; is_first = false) {
      try {
        return is_first ? work(*connection_) : again(*connection_);
      } catch (const ConnectionLost& loss) {
        connect_again(loss);
      }
    }
  }
  /// The same for work that may be done twice.
  template <typename Work>
  auto run(Work&& work) {
    return run(work, work);
  }

 private:
  void connect_again(const ConnectionLost& loss);

  std::unique_ptr<Connection> connection_;
  Ways ways_;
};

}  // namespace mailroom
