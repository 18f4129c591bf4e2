#pragma once

#include <arpa/inet.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace mailroom::test {

/// A port of 127.0.0.1 that refuses connections, and that nobody else can take meanwhile.
class RefusingPort {
 public:
  RefusingPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    void* const bytes = &address;
    auto* const general = static_cast<sockaddr*>(bytes);
    socklen_t size = sizeof address;
    if (socket_ < 0 || bind(socket_, general, size) != 0 || getsockname(socket_, general, &size) != 0) {
      throw std::runtime_error("cannot take a port of 127.0.0.1");
    }
    port_ = ntohs(address.sin_port);
  }
  ~RefusingPort() { close(socket_); }
  RefusingPort(const RefusingPort&) = delete;
  RefusingPort& operator=(const RefusingPort&) = delete;

  int port() const { return port_; }

 private:
  int socket_;
  int port_ = 0;
};

}  // namespace mailroom::test
