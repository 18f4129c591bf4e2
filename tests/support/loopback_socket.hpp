#pragma once

#include <arpa/inet.h>
#include <stdexcept>
#include <sys/socket.h>
#include <utility>

namespace mailroom::test {

/// A TCP socket bound to a free port of 127.0.0.1, and this port.
inline std::pair<int, int> bind_on_loopback() {
  const int bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  void* const bytes = &address;
  auto* const general = static_cast<sockaddr*>(bytes);
  socklen_t size = sizeof address;
  if (bound < 0 || bind(bound, general, size) != 0 || getsockname(bound, general, &size) != 0)
    throw std::runtime_error("cannot take a port of 127.0.0.1");
  return {bound, ntohs(address.sin_port)};
}

}  // namespace mailroom::test
