#pragma once

#include <chrono>

namespace mailroom {

using Milliseconds = std::chrono::milliseconds;
/// Time of day, so that processes can share it.
using WallTime = std::chrono::sys_time<Milliseconds>;
using TimePoint = std::chrono::steady_clock::time_point;

/// Monotonic time, behind an interface so that tests can control it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

}  // namespace mailroom
