#pragma once

#include "adaptive/arrivals.hpp"
#include "consumer/batcher.hpp"

namespace mailroom::test {

/// What a collector made of some arrivals.
struct PlayedBatches {
  std::size_t tokens = 0;
  std::size_t lines = 0;
  std::size_t claims = 0;
  std::size_t longest_line = 0;
  std::chrono::nanoseconds longest_delay{};
  std::chrono::duration<double> delay{};  ///< from arrival to line, summed over the tokens

  std::chrono::duration<double> mean_delay() const { return delay / static_cast<double>(tokens); }
  /// What the batcher minimises.
  std::chrono::duration<double> cost(Milliseconds line_cost) const {
    return static_cast<double>(lines) * line_cost + delay;
  }
};

/// Plays one collector, which only follows its batcher, on a queue where each token notifies. A claim takes a
/// millisecond and sees what arrives during the first half of it.
PlayedBatches play_batches(const Arrivals& arrivals, const consumer::Batcher::Options& options);

/// A fixed limit and timeout.
consumer::Batcher::Options fixed_batching(int limit, Milliseconds timeout);
/// Ranges that cover every fixed pair.
consumer::Batcher::Options adaptive_batching(Milliseconds line_cost);

/// The limits and timeouts that users may choose instead.
const std::vector<consumer::Batcher::Options>& fixed_grid();

}  // namespace mailroom::test
