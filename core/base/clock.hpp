#pragma once

#include <chrono>

namespace mailroom {

using Milliseconds = std::chrono::milliseconds;
using TimePoint = std::chrono::steady_clock::time_point;

/// Monotonic time, behind an interface so that tests can control it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

}  // namespace mailroom
