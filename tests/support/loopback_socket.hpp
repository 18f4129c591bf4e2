#pragma once

#include <arpa/inet.h>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace mailroom::test {

/// A TCP socket bound to a free port of 127.0.0.1, and this port; or to `port` of 127.0.0.2, if it is not 0.
inline std::pair<int, int> bind_on_loopback(int port = 0) {
  const int bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (port == 0 ? 0 : 1));
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  void* const bytes = &address;
  auto* const general = static_cast<sockaddr*>(bytes);
  socklen_t size = sizeof address;
  if (bound < 0 || bind(bound, general, size) != 0 || getsockname(bound, general, &size) != 0)
    throw std::runtime_error("cannot take a port of this host");
  return {bound, ntohs(address.sin_port)};
}

/// A TCP socket connected to `port` of 127.0.0.1. Throws std::runtime_error if nothing listens there.
inline int connect_on_loopback(int port) {
  const int connected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const void* const bytes = &address;
  if (connect(connected, static_cast<const sockaddr*>(bytes), sizeof address) == 0) return connected;
  close(connected);
  throw std::runtime_error("nothing listens on 127.0.0.1:" + std::to_string(port));
}

}  // namespace mailroom::test
