#pragma once

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

 private:
  int socket_ = -1;
  int port_ = 0;
};

}  // namespace mailroom::test
