// Binds TCP and unix sockets.

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.hpp"
#include "process/http_listener.hpp"

namespace mailroom::process {
namespace {

/// An address of any kind, as the system calls take it.
struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
};

template <typename Kind>
SocketAddress as_bytes(const Kind& kind) {
  SocketAddress address;
  std::memcpy(&address.bytes, &kind, sizeof kind);
  address.size = sizeof kind;
  return address;
}

SocketAddress socket_address(const config::ListenAddress& address) {
  if (address.is_unix()) {
    sockaddr_un named{};
    named.sun_family = AF_UNIX;
    address.path.copy(named.sun_path, sizeof named.sun_path - 1);
    return as_bytes(named);
  }
  const auto port = htons(static_cast<std::uint16_t>(address.port));
  sockaddr_in in{};
  if (inet_pton(AF_INET, address.host.c_str(), &in.sin_addr) == 1) {
    in.sin_family = AF_INET;
    in.sin_port = port;
    return as_bytes(in);
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = port;
  inet_pton(AF_INET6, address.host.c_str(), &in6.sin6_addr);
  return as_bytes(in6);
}

int chosen_port(int fd) {
  SocketAddress address;
  address.size = sizeof address.bytes;
  getsockname(fd, address.get(), &address.size);
  if (address.bytes.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.bytes)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.bytes)->sin_port);
}

std::string hint_for(int error, const config::ListenAddress& address, const ListenWords& words) {
  if (address.is_unix()) {
    return error == EACCES ? "this user must be able to write into the directory"
                           : "the directory must exist, and this user must be able to write into it";
  }
  if (error == EADDRNOTAVAIL)
    return "the address is none of this host; 127.0.0.1 and [::1] are, and 0.0.0.0 stands for all";
  if (error == EACCES) return fmt::format("a port below 1024 needs a privilege; {} needs none", words.port);
  return fmt::format("{} the address", words.named_by);
}

/// True if somebody listens at a unix socket.
bool is_answered(const SocketAddress& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool answered = fd >= 0 && (connect(fd, address.get(), address.size) == 0 || errno == EAGAIN);
  if (fd >= 0) close(fd);
  return answered;
}

}  // namespace

[[noreturn]] void ListeningSocket::refuse(int error) const {
  throw Error(ExitCode::configuration,
              fmt::format("cannot serve {} at {}: {}", words_.subject, address_.text(), std::strerror(error)),
              hint_for(error, address_, words_));
}

[[noreturn]] void ListeningSocket::refuse_as_used() const {
  throw Error(
      ExitCode::locked,
      fmt::format("cannot serve {} at {}: another process listens there", words_.subject, address_.text()),
      address_.is_unix()
          ? fmt::format("each {} needs a socket of its own", words_.owner)
          : fmt::format("each {} needs a port of its own; ss -ltnp shows who has this one", words_.owner));
}

ListeningSocket::ListeningSocket(const config::ListenAddress& address, const ListenWords& words)
    : address_(address), words_(words) {
  const int family = socket_address(address_).bytes.ss_family;
  fd_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) refuse(errno);
  try {
    address_.is_unix() ? listen_at_path() : listen_at_port();
    if (listen(fd_, SOMAXCONN) != 0) errno == EADDRINUSE ? refuse_as_used() : refuse(errno);
  } catch (...) {
    close(fd_);
    throw;
  }
}

ListeningSocket::~ListeningSocket() {
  if (address_.is_unix()) unlink(address_.path.c_str());
  close(fd_);
}

void ListeningSocket::listen_at_path() {
  const auto bytes = socket_address(address_);
  struct stat file {};
  if (lstat(address_.path.c_str(), &file) == 0) {
    if (!S_ISSOCK(file.st_mode)) {
      throw Error(ExitCode::configuration,
                  fmt::format("cannot serve {} at {}: the file exists, and is no socket", words_.subject,
                              address_.path),
                  "name another path, or remove the file");
    }
    if (is_answered(bytes)) refuse_as_used();
    unlink(address_.path.c_str());
  }
  if (bind(fd_, bytes.get(), bytes.size) != 0) refuse(errno);
}

void ListeningSocket::listen_at_port() {
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto bytes = socket_address(address_);
  if (bind(fd_, bytes.get(), bytes.size) != 0) errno == EADDRINUSE ? refuse_as_used() : refuse(errno);
  if (address_.port == 0) address_.port = chosen_port(fd_);
}

}  // namespace mailroom::process
