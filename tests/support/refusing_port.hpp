#pragma once

#include <stdexcept>
#include <tuple>
#include <unistd.h>

#include "support/loopback_socket.hpp"

namespace mailroom::test {

/// A port that refuses connections, and that nobody else can take meanwhile: a free one of 127.0.0.1, or
/// `port` of 127.0.0.2.
class RefusingPort {
 public:
  explicit RefusingPort(int port = 0) { std::tie(socket_, port_) = bind_on_loopback(port); }
  ~RefusingPort() { close(socket_); }
  RefusingPort(const RefusingPort&) = delete;
  RefusingPort& operator=(const RefusingPort&) = delete;

  int port() const { return port_; }

 protected:
  int socket() const { return socket_; }

 private:
  int socket_ = -1;
  int port_ = 0;
};

/// One that takes connections and never says anything.
class SilentPort : public RefusingPort {
 public:
  explicit SilentPort(int port = 0) : RefusingPort(port) {
    if (listen(socket(), 64) != 0) throw std::runtime_error("cannot listen on a port of this host");
  }
};

}  // namespace mailroom::test
