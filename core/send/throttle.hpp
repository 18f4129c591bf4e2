#pragma once

#include <optional>

#include "base/clock.hpp"

namespace mailroom {

/// The rate that a sender keeps to after a relay has asked for a lower one: half of what it was, or half
/// again; then a quarter more every ten seconds without such an answer, until it is what it was. Pure: takes
/// times, returns times.
class Throttle {
 public:
  static constexpr std::chrono::seconds raised_every{10};

  /// Records that `mails` were delivered from `began` to `ended`, and whether an answer asked for a lower
  /// rate.
  void delivered(int mails, TimePoint began, TimePoint ended, bool throttled);

  /// The next batch may begin then; no time if there is nothing to wait for.
  TimePoint next() const { return next_; }
  /// In mails per second; nullopt without a limit.
  std::optional<double> limit() const { return limit_; }

 private:
  std::optional<double> limit_;
  double full_ = 0;  ///< the rate at which the limit ends
  TimePoint raised_at_{};
  TimePoint next_{};
};

}  // namespace mailroom
