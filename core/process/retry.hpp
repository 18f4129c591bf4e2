// Retries: how long to wait before the next attempt, and how often to log a failure that lasts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace mailroom::process {

/// Exponential back-off with jitter: 50 ms doubling to 1 s. Each delay is drawn from the upper half of its
/// bound, so that many collectors do not retry at the same instant.
class Backoff {
 public:
  explicit Backoff(std::uint64_t seed) : random_(seed) {}

  Milliseconds next() {
    std::uniform_int_distribution<Milliseconds::rep> jitter(bound_.count() / 2, bound_.count());
    bound_ = std::min(bound_ * 2, longest);
    return Milliseconds{jitter(random_)};
  }
  void reset() { bound_ = shortest; }

 private:
  static constexpr Milliseconds shortest{50};
  static constexpr Milliseconds longest{1000};

  std::mt19937_64 random_;
  Milliseconds bound_ = shortest;
};

/// Logs repeated failures at a decreasing rate: the first one, then `still trying` after 10, 20, 40 s and so
/// on, later every 10 min.
class RetryLog {
 public:
  explicit RetryLog(Log& log) : log_(log) {}

  /// Records a failed attempt. Logs a warning: `message` for the first failure, `still trying` when the next
  /// line is due.
  void failed(std::string_view message, const std::string& reason, TimePoint now);
  /// Call when an attempt has progressed. True if that should be logged: nothing has failed, or a failure was
  /// logged since the last call.
  bool is_news();
  /// Call when an attempt has succeeded: the next failure is a first one.
  void worked() { failing_since_.reset(); }

  /// The time since the first failure; nullopt if nothing is failing.
  std::optional<Milliseconds> failing_for(TimePoint now) const;

 private:
  Log& log_;
  std::optional<TimePoint> failing_since_;
  Milliseconds next_line_{};
  bool told_ = false;
};

}  // namespace mailroom::process
