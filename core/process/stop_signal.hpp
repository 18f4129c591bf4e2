// How a process learns that it must stop or reload.
#pragma once

#include <array>
#include <csignal>

#include "base/clock.hpp"

namespace mailroom::process {

/// SIGTERM, SIGINT and SIGHUP as flags and as descriptors for poll(2). The first SIGTERM or SIGINT requests a
/// stop; a second one ends the process at once with status 128 + its number.
class StopSignal {
 public:
  /// Installs the handlers; the destructor restores those that were there. At most one object may exist at a
  /// time.
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const;
  /// The number of the first SIGTERM or SIGINT; 0 if there was none.
  int number() const;
  /// True once after one or more SIGHUPs.
  bool take_reload();
  /// Readable if a signal arrived since the last drain().
  int fd() const { return read_end_; }
  /// Readable from the first stop request on.
  int stop_fd() const { return stop_end_; }
  void drain();
  /// Sleeps; returns early on a stop request.
  void sleep_for(Milliseconds duration);

 private:
  int read_end_;
  int stop_end_;
  std::array<struct sigaction, 3> before_{};
};

}  // namespace mailroom::process
