// The weighted mean, with constants that were measured under simulated load.

#include "consumer/arrival_gap.hpp"

#include <algorithm>

namespace mailroom {
namespace {

// Chosen with tests/adaptive: a longer memory notices the start of a burst later, a shorter one takes
// chance for a change of the rate.
constexpr double memory = 3;            ///< so many new gaps count as much as all earlier ones
constexpr double pauses_to_forget = 8;  ///< after a pause of so many longest gaps, earlier gaps count half

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

}  // namespace mailroom
