#include "simulation/latency.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mailroom {
namespace {

constexpr std::uint64_t half = 128;  // buckets for each doubling
constexpr std::uint64_t largest = std::uint64_t{1} << 40U;

/// Below 256 a bucket holds one value; above, each doubling has 128 buckets, twice as wide as those before.
std::size_t bucket_of(std::uint64_t value) {
  const auto width = static_cast<unsigned>(std::bit_width(value));
  const unsigned shift = width > 8 ? width - 8 : 0;
  return shift * half + (value >> shift);
}

std::uint64_t upper_bound_of(std::size_t bucket) {
  if (bucket < 2 * half) return bucket;
  const std::uint64_t shift = bucket / half - 1;
  const std::uint64_t leading = bucket - shift * half;
  return ((leading + 1) << shift) - 1;
}

}  // namespace

LatencyHistogram::LatencyHistogram() : buckets_(bucket_of(largest) + 1) {}

void LatencyHistogram::add(std::chrono::microseconds latency) {
  const auto value = std::clamp<std::int64_t>(latency.count(), 0, largest);
  ++buckets_[bucket_of(static_cast<std::uint64_t>(value))];
  ++count_;
  max_ = std::max(max_, value);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

std::chrono::microseconds LatencyHistogram::percentile(double percent) const {
  const double share = std::ceil(static_cast<double>(count_) * percent / 100.0);
  const auto rank =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(share), 1, std::max<std::int64_t>(count_, 1));
  std::int64_t passed = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    passed += buckets_[i];
    if (passed >= rank) {
      return std::chrono::microseconds(std::min(static_cast<std::int64_t>(upper_bound_of(i)), max_));
    }
  }
  return std::chrono::microseconds(0);
}

}  // namespace mailroom
