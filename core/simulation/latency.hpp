// The percentiles of how long transactions took, for the summary of a simulation.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>

namespace mailroom {

/// Counts durations in little memory. In microseconds: values below 256 are exact, larger ones rounded up by
/// at most 1/128.
class LatencyHistogram {
 public:
  void add(std::chrono::microseconds latency);

  std::int64_t count() const { return count_; }
  /// The smallest latency that at least `percent` of all do not exceed; never below the exact value. 0 if
  /// there are none.
  std::chrono::microseconds percentile(double percent) const;
  std::chrono::microseconds max() const { return std::chrono::microseconds(max_); }

 private:
  std::map<std::int64_t, std::int64_t> counts_;  ///< by rounded value
  std::int64_t count_ = 0;
  std::int64_t max_ = 0;
};

}  // namespace mailroom
