#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace mailroom::test {

/// Forwards TCP connections from a free port of 127.0.0.1 to another port, and breaks them on demand.
class TcpProxy {
 public:
  explicit TcpProxy(int target_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  int port() const { return port_; }
  /// Cuts the connection on which the server's next `bytes` bytes, counted over all connections, have passed.
  void cut_after(std::int64_t bytes) { left_ = bytes; }
  /// The number of such cuts.
  int cuts() const { return cuts_; }
  /// Neither forwards nor closes anything until thaw().
  void freeze() { frozen_ = true; }
  void thaw() { frozen_ = false; }
  /// Cuts all open connections.
  void cut_all() { ++generation_; }

 private:
  void accept_all();
  void forward(int client);
  /// Returns false if the connection must end.
  bool pass_on(int from, int to, bool is_reply);

  int target_port_;
  int listener_;
  int port_;
  std::atomic<std::int64_t> left_{-1};
  std::atomic<int> cuts_{0};
  std::atomic<int> generation_{0};
  std::atomic<bool> frozen_{false};
  std::atomic<bool> ended_{false};
  std::vector<std::thread> forwarders_;
  std::thread accepter_;
};

}  // namespace mailroom::test
