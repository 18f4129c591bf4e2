// A descriptor with which one thread wakes another.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.hpp"

namespace mailroom {

/// An eventfd that never blocks.
class EventFd {
 public:
  /// Throws Error(failed).
  EventFd() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) throw Error(ExitCode::failed, "cannot make an eventfd");
  }
  ~EventFd() { close(fd_); }
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  /// For poll(2): readable from a signal() until the next clear().
  int fd() const { return fd_; }
  void signal() const { eventfd_write(fd_, 1); }
  void clear() const {
    eventfd_t count = 0;
    eventfd_read(fd_, &count);
  }

 private:
  int fd_;
};

}  // namespace mailroom
