#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// A connection that is made again when it is lost, as it is in a restart of the server. Transactions are
/// committed one by one, so that of what was under way when it was lost nobody knows whether it was kept.
class LastingConnection {
 public:
  struct Ways {
    std::function<std::unique_ptr<Connection>()> connect;
    Milliseconds patience{};  ///< after so long without a connection the loss is thrown
    std::function<bool()>
        go_on;  ///< asked every few milliseconds meanwhile; the loss is thrown if it says no
    std::function<void(const std::string& reason)> lost;  ///< called when it is lost …
    std::function<void()> back;                           ///< … and when there is another one
  };

  /// Begins with `connection`.
  LastingConnection(std::unique_ptr<Connection> connection, Ways ways)
      : connection_(std::move(connection)), ways_(std::move(ways)) {}

  /// Prepares `sql` under `name`, here and on every connection to come.
  void prepare(const std::string& name, const std::string& sql);

  /// What `work(Connection&)` returns; if the connection is lost with it, what `again(Connection&)` does on
  /// another one. The latter has to see whether the former was kept.
  template <typename Work, typename Again>
  auto run(Work&& work, Again&& again) -> decltype(work(std::declval<Connection&>())) {
    try {
      return work(*connection_);
    } catch (const ConnectionLost& loss) {
      connect_again(loss);
    }
    for (;;) {
      try {
        return again(*connection_);
      } catch (const ConnectionLost& loss) {
        connect_again(loss);
      }
    }
  }
  /// Of what may be done twice.
  template <typename Work>
  auto run(Work&& work) {
    return run(work, work);
  }

 private:
  void connect_again(const ConnectionLost& loss);
  bool try_to_connect();

  std::unique_ptr<Connection> connection_;
  Ways ways_;
  std::map<std::string, std::string> prepared_;
};

}  // namespace mailroom
