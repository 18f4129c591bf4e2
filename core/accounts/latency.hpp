#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace mailroom {

/// Durations counted in buckets that widen with the value, so that any number of them takes the same memory.
/// Microseconds; what is below 256 is exact, the rest at most 1/128 too large, and 2^40 (12 days) the most.
class LatencyHistogram {
 public:
  LatencyHistogram();

  void add(std::chrono::microseconds latency);
  void merge(const LatencyHistogram& other);

  std::int64_t count() const { return count_; }
  /// The smallest latency that at least `percent` of all do not exceed; never less than the exact one. 0 if
  /// there are none.
  std::chrono::microseconds percentile(double percent) const;
  std::chrono::microseconds max() const { return std::chrono::microseconds(max_); }

 private:
  std::vector<std::int64_t> buckets_;
  std::int64_t count_ = 0;
  std::int64_t max_ = 0;
};

}  // namespace mailroom
