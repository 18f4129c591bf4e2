// The types of durations and times, and the clock as an interface that a test can replace.
#pragma once

#include <chrono>

namespace mailroom {

using Milliseconds = std::chrono::milliseconds;
/// Time of day, so that processes can share it.
using WallTime = std::chrono::sys_time<Milliseconds>;
using TimePoint = std::chrono::steady_clock::time_point;

/// Monotonic time, where no test needs to control it.
inline TimePoint steady_now() {
  return std::chrono::steady_clock::now();
}

/// The time of day, in whole milliseconds.
inline WallTime wall_now() {
  return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
}

/// Monotonic time, behind an interface so that tests can control it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

/// The system's monotonic clock.
class SteadyClock final : public Clock {
 public:
  static const SteadyClock& only() {
    static const SteadyClock clock;
    return clock;
  }
  TimePoint now() const override { return steady_now(); }
};

}  // namespace mailroom
