#pragma once

#include "base/clock.hpp"

namespace mailroom {

/// SIGTERM, SIGINT and SIGHUP as state that a loop looks at and a descriptor that wakes poll(2). The first
/// SIGTERM or SIGINT asks to stop; a second one ends the process at once with 128 + its number.
class StopSignal {
 public:
  /// Installs the handlers, for the rest of the process. One at a time.
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const;
  /// The first SIGTERM or SIGINT; 0 before.
  int number() const;
  /// True once for each SIGHUP, or several that came together.
  bool take_reload();
  /// Readable whenever a signal came since the last drain().
  int fd() const { return read_end_; }
  /// Readable from the first request to stop on, for good.
  int stop_fd() const { return stop_end_; }
  void drain();
  /// Sleeps, but not past a request to stop.
  void sleep_for(Milliseconds duration);

 private:
  int read_end_;
  int stop_end_;
};

}  // namespace mailroom
