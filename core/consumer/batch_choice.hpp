// Where batch limit and timeout are ranges: how fast tokens arrive, and which limit and timeout follow.
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

/// Between which values a collector chooses limit and timeout of a batch, and what it weighs.
struct BatchBounds {
  int min_limit = 0;
  int max_limit = 0;
  Milliseconds min_timeout{};
  Milliseconds max_timeout{};
  Milliseconds line_cost{};  ///< how much delay, summed over tokens, one line saved is worth
};

struct BatchChoice {
  int limit = 0;                       ///< this many tokens are a full batch
  std::chrono::nanoseconds timeout{};  ///< from the first token; 0: emit at once
};

/// The choice that minimises line_cost x lines + sum of delays, if the next tokens arrive at random, `gap`
/// apart on average (a Poisson process). docs/batching.md derives it.
///
/// With a limit of n tokens, a batch costs line_cost + gap x (0 + 1 + … + (n - 1)), so n + 1 cost less per
/// token than n while line_cost / gap > n (n + 1) / 2: the square root of the economic order quantity (F. W.
/// Harris, 1913), for whole numbers. With a timeout of t, a batch has 1 + t / gap tokens, whose delays sum up
/// to t + t² / (2 gap); the cost per token is least at t / gap = sqrt(2 line_cost / gap - 1) - 1.
BatchChoice choose_batch(const BatchBounds& bounds, std::chrono::duration<double> gap);

}  // namespace mailroom
