// Tells an operator why a command hangs: which session holds the lock that it waits for.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom::db {

/// A thread that tells whom the statement of a session waits for: once it has waited for about a second, and
/// again when it waits for another session. It looks in a session of its own, which it opens only while a
/// statement takes long.
class WaitWatch {
 public:
  static constexpr Milliseconds interval{500};

  struct Options {
    DatabaseTarget target{};
    std::string purpose{};
    /// Called in the watch's thread while `connection` runs a statement. Must not throw.
    std::function<void(const std::string& text)> tell{};
    /// How long a statement may take before anybody looks why; up to twice as long passes until then.
    Milliseconds patience{0};
    /// Called once the statement has ended for which something was told, in the same way; may be empty.
    std::function<void()> over{};
  };

  /// Watches `connection` until either ends.
  WaitWatch(const Connection& connection, Options options);
  /// Calls no `tell` any more. Does not wait for a server or a pooler that does not answer the second
  /// session.
  ~WaitWatch();
  WaitWatch(const WaitWatch&) = delete;
  WaitWatch& operator=(const WaitWatch&) = delete;

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace mailroom::db
