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

 private:
  int socket_ = -1;
  int port_ = 0;
};

/// A port of 127.0.0.1 that takes connections and never says anything.
class SilentPort {
 public:
  SilentPort() {
    std::tie(socket_, port_) = bind_on_loopback();
    if (listen(socket_, 64) != 0) throw std::runtime_error("cannot listen on a port of this host");
  }
  ~SilentPort() { close(socket_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  int port() const { return port_; }

 private:
  int socket_ = -1;
  int port_ = 0;
};

}  // namespace mailroom::test
