// The open sockets of a relay's connection, which another thread may shut down.
#pragma once

#include <atomic>
#include <mutex>
#include <string_view>
#include <vector>

namespace mailroom::smtp {

/// The sockets that one libcurl handle has open. Any thread may shut them down: a descriptor is closed and
/// shut down under one lock, so that none that the system has given to somebody else is ever touched.
class RelaySockets {
 public:
  /// Opens a socket; -1 if that fails, or while interrupted.
  int open(int family, int type, int protocol);
  int close(int socket);
  /// Sends a few bytes unless that would wait.
  void say(int socket, std::string_view bytes);

  /// Ends the connections.
  void shut_down();
  /// Nothing more is read from the connections: a wait for a reply ends at once.
  void end_reading();
  /// shut_down(), and opens no socket until resume().
  void interrupt();
  void resume() { interrupted_ = false; }
  bool interrupted() const { return interrupted_; }

 private:
  void shut_down_all(int how);

  std::mutex mutex_;
  std::vector<int> open_;
  std::atomic<bool> interrupted_ = false;
};

}  // namespace mailroom::smtp
