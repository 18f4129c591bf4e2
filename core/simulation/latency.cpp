// Keeps eight significant bits of each value, which bounds both the memory and the error.

#include "simulation/latency.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mailroom {
namespace {

/// `value` with its first eight bits kept and all others set.
std::int64_t rounded_up(std::int64_t value) {
  const auto width = std::bit_width(static_cast<std::uint64_t>(value));
  return width > 8 ? value | ((std::int64_t{1} << (width - 8)) - 1) : value;
}

}  // namespace

void LatencyHistogram::add(std::chrono::microseconds latency) {
  const auto value = std::max<std::int64_t>(latency.count(), 0);
  ++counts_[rounded_up(value)];
  ++count_;
  max_ = std::max(max_, value);
}

std::chrono::microseconds LatencyHistogram::percentile(double percent) const {
  const double rank = std::max(std::ceil(static_cast<double>(count_) * percent / 100.0), 1.0);
  std::int64_t passed = 0;
  for (const auto& [value, count] : counts_) {
    passed += count;
    if (static_cast<double>(passed) >= rank) return std::chrono::microseconds(std::min(value, max_));
  }
  return std::chrono::microseconds(0);
}

}  // namespace mailroom
