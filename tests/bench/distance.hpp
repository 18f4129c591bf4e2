#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace mailroom::bench {

/// A port of this host behind which a server of this host is far away: each byte arrives half a round trip
/// after it was sent, in both directions. No limit of bandwidth.
class Distance {
 public:
  /// `server`: `127.0.0.1:2525`
  Distance(const std::string& server, std::chrono::milliseconds round_trip);
  ~Distance();
  Distance(const Distance&) = delete;
  Distance& operator=(const Distance&) = delete;

  /// `127.0.0.1:2526`
  std::string address() const;

 private:
  void carry();

  int server_port_;
  std::chrono::nanoseconds one_way_;
  int listener_;
  int port_;
  std::atomic<bool> has_ended_ = false;
  std::thread thread_;
};

}  // namespace mailroom::bench
