// Threads beside the main one: signals are kept away from them, and one wakes another through a descriptor.
#pragma once

#include <atomic>
#include <csignal>
#include <pthread.h>
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
  /// After the change that it tells of. Many before the next clear() are one system call.
  void signal() const {
    if (!is_set_.exchange(true)) eventfd_write(fd_, 1);
  }
  /// True from a signal() until the next clear(). Costs no system call.
  bool is_set() const { return is_set_; }
  /// Before a look at what was changed, or a change is missed. In this order, since what is signalled between
  /// the two is seen by that look.
  void clear() const {
    eventfd_t count = 0;
    eventfd_read(fd_, &count);
    is_set_ = false;
  }

 private:
  int fd_;
  mutable std::atomic<bool> is_set_ = false;
};

/// While it exists, this thread blocks all signals. A thread that is started meanwhile inherits that and
/// handles none: signals are for the main thread.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace mailroom
