// Tells /healthz and systemd's watchdog whether a consumer hangs.
#pragma once

#include <atomic>

#include "consumer/consumer_observer.hpp"

namespace mailroom {

/// Whether the loop of a consumer turns, for any thread to ask.
class LoopState final : public ConsumerObserver {
 public:
  /// The loop counts as having turned `now`.
  explicit LoopState(TimePoint now) : busy_from_(now) {}

  void turned(TimePoint now) override { busy_from_ = now; }
  void waits(TimePoint until) override { busy_from_ = until; }
  void delivers() override { busy_from_ = TimePoint::max(); }

  /// How long the loop has been overdue: 0 while it waits as it said, and while its sink delivers. Statements
  /// usually take milliseconds; one that waits for a lock may take long, and the loop does not turn
  /// meanwhile.
  std::chrono::nanoseconds overdue(TimePoint now) const {
    const auto from = busy_from_.load();
    return from < now ? now - from : std::chrono::nanoseconds(0);
  }

 private:
  static_assert(std::atomic<TimePoint>::is_always_lock_free);
  std::atomic<TimePoint> busy_from_;
};

}  // namespace mailroom
