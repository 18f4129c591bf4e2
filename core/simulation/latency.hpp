#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace mailroom {

/// Counts durations in buckets that widen with the value, in constant memory. In microseconds: values below
/// 256 are exact, larger ones at most 1/128 too large; the maximum is 2^40 (12 days).
class LatencyHistogram {
 public:
  LatencyHistogram();

  void add(std::chrono::microseconds latency);
  void merge(const LatencyHistogram& other);

  std::int64_t count() const { return count_; }
  /// The smallest latency that at least `percent` of all do not exceed; never below the exact value. 0 if
  /// there are none.
  std::chrono::microseconds percentile(double percent) const;
  std::chrono::microseconds max() const { return std::chrono::microseconds(max_); }

 private:
  std::vector<std::int64_t> buckets_;
  std::int64_t count_ = 0;
  std::int64_t max_ = 0;
};

}  // namespace mailroom
