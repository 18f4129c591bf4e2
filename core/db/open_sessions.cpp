// Knows every Connection from its first statement to its end.

#include "db/open_sessions.hpp"

#include <atomic>
#include <csignal>
#include <fmt/format.h>
#include <mutex>
#include <set>

#include "db/connection.hpp"

namespace mailroom::db {
namespace {

struct OpenSessions {
  std::mutex mutex{};
  std::set<Connection*> connections{};
};

/// Never destroyed: a thread that nobody waits for may end its connection after main().
OpenSessions& open_sessions() {
  static auto* const sessions = new OpenSessions;
  return *sessions;
}

std::atomic<int> interrupted_by{0};

}  // namespace

Interrupted::Interrupted(int signal)
    : Error(
          static_cast<ExitCode>(128 + signal),
          fmt::format("stopped by {}; the server has ended its statement", signal == SIGINT    ? "SIGINT"
                                                                           : signal == SIGTERM ? "SIGTERM"
                                                                                               : "SIGHUP")) {}

void add_session(Connection& connection) {
  const std::lock_guard lock(open_sessions().mutex);
  open_sessions().connections.insert(&connection);
}

void remove_session(Connection& connection) {
  const std::lock_guard lock(open_sessions().mutex);
  open_sessions().connections.erase(&connection);
}

void interrupt_statements(int signal) {
  interrupted_by = signal;
}

int interrupting_signal() {
  return interrupted_by;
}

std::size_t cancel_running_statements() {
  const std::lock_guard lock(open_sessions().mutex);
  std::size_t busy = 0;
  for (auto* const connection : open_sessions().connections) {
    if (*connection->activity() % 2 == 0) continue;
    ++busy;
    try {
      connection->cancel();
    } catch (const Error&) {
      // The server cannot be reached: it ends the statement when it notices that this process is gone.
      continue;
    }
  }
  return busy;
}

}  // namespace mailroom::db
