#pragma once

#include <stdexcept>
#include <tuple>
#include <unistd.h>

#include "support/loopback_socket.hpp"

namespace mailroom::test {

/// A port of 127.0.0.1 that refuses connections, and that nobody else can take meanwhile.
class RefusingPort {
 public:
  RefusingPort() { std::tie(socket_, port_) = bind_on_loopback(); }
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
  SilentPort() {
    if (listen(socket(), 64) != 0) throw std::runtime_error("cannot listen on a port of this host");
  }
};

}  // namespace mailroom::test
