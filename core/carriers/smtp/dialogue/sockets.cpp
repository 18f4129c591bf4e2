// Closes and shuts down under one lock, so that no descriptor is touched that the system has given away.

#include "carriers/smtp/dialogue/sockets.hpp"

#include <algorithm>
#include <sys/socket.h>
#include <unistd.h>

namespace mailroom::smtp {

int RelaySockets::open(int family, int type, int protocol) {
  const std::lock_guard lock(mutex_);
  if (interrupted_) return -1;
  const int opened = ::socket(family, type | SOCK_CLOEXEC, protocol);
  if (opened >= 0) open_.push_back(opened);
  return opened;
}

int RelaySockets::close(int socket) {
  const std::lock_guard lock(mutex_);
  open_.erase(std::remove(open_.begin(), open_.end(), socket), open_.end());
  return ::close(socket);
}

void RelaySockets::say(int socket, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void RelaySockets::shut_down_all(int how) {
  for (const int each : open_)
    ::shutdown(each, how);
}

void RelaySockets::shut_down() {
  const std::lock_guard lock(mutex_);
  shut_down_all(SHUT_RDWR);
}

void RelaySockets::end_reading() {
  const std::lock_guard lock(mutex_);
  shut_down_all(SHUT_RD);
}

void RelaySockets::interrupt() {
  // Under the lock of open(), so that a socket is either refused or shut down.
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  shut_down_all(SHUT_RDWR);
}

}  // namespace mailroom::smtp
