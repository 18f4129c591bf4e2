// How fast tokens arrive, as a collector with an adaptive batch limit estimates it.
#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace mailroom {

/// Estimates the mean gap between the arrivals of two tokens. Pure: takes times and counts.
///
/// The estimate is an exponentially weighted mean with one weight for each token, so it follows a change of
/// the rate within a dozen tokens, whether these take milliseconds or hours. A long pause makes the gaps
/// before it count less. It counts as the longest gap itself, since all gaps that are longer than any wait
/// lead to the same choice.
class ArrivalGap {
 public:
  using Seconds = std::chrono::duration<double>;

  /// Until tokens have arrived, the mean is the longest gap.
  explicit ArrivalGap(Seconds longest = {}) : longest_(longest), mean_(longest) {}

  /// Tokens before `now` do not count.
  void start(TimePoint now) { last_ = now; }
  /// `tokens` have arrived since the last call with any.
  void arrived(int tokens, TimePoint now);
  Seconds mean() const { return mean_; }

 private:
  Seconds longest_;
  Seconds mean_;
  TimePoint last_{};
};

}  // namespace mailroom
