// A weighted mean of the gaps between arrivals, and the optimum of docs/batching.md within the bounds.

#include "consumer/batch_choice.hpp"

#include <algorithm>
#include <cmath>

namespace mailroom {
namespace {

// Chosen with tests/adaptive: a longer memory notices the start of a burst later, a shorter one takes
// chance for a change of the rate.
constexpr double memory = 3;            ///< so many new gaps count as much as all earlier ones
constexpr double pauses_to_forget = 8;  ///< after a pause of so many longest gaps, earlier gaps count half

/// A line of `limit` tokens is awaited for this many times the time that it takes to fill on average. Then
/// the tokens probably stay away.
constexpr double patience = 3;

/// The number of tokens in a line at which the next one is worth less than the delay that it causes.
double best_fill(double lines_per_gap) {
  return std::ceil((std::sqrt(1 + 8 * lines_per_gap) - 1) / 2);
}

}  // namespace

void ArrivalGap::arrived(int tokens, TimePoint now) {
  if (tokens == 0) return;
  const auto passed = std::max(Seconds(now - last_), Seconds(0));
  last_ = now;
  if (longest_ <= Seconds(0)) return;
  const auto gap = std::min(passed / tokens, longest_);
  const double weight = memory / (1 + passed / (pauses_to_forget * longest_));
  mean_ = (weight * mean_ + tokens * gap) / (weight + tokens);
}

BatchChoice choose_batch(const BatchBounds& bounds, std::chrono::duration<double> gap) {
  using Seconds = std::chrono::duration<double>;
  const Seconds cost = bounds.line_cost;
  const BatchChoice at_once{bounds.max_limit, {}};
  // No second token is expected in time.
  if (gap >= Seconds(bounds.max_timeout)) return at_once;
  if (gap <= Seconds(0)) return {bounds.max_limit, bounds.min_timeout};
  const double ratio = cost / gap;
  const double fill = best_fill(ratio);
  const auto limit = std::clamp<double>(fill, bounds.min_limit, bounds.max_limit);
  // Where tokens come too slowly for the least limit, the timeout ends the batches. Otherwise it ends those
  // whose tokens stay away.
  const double gaps = limit > fill ? std::sqrt(std::max(2 * ratio - 1, 1.0)) - 1 : patience * (limit - 1);
  const auto timeout = std::clamp<std::chrono::nanoseconds>(
      std::chrono::round<std::chrono::nanoseconds>(gaps * gap), bounds.min_timeout, bounds.max_timeout);
  // A line of n tokens saves n - 1 lines, and costs n (n - 1) / 2 gaps. A wait of t saves t / gap lines, and
  // costs t + t² / (2 gap). Neither may be worth it, where the bounds exclude the best.
  if (cost <= std::min<Seconds>(limit * gap / 2, gap + Seconds(timeout) / 2)) return at_once;
  return {static_cast<int>(limit), timeout};
}

}  // namespace mailroom
