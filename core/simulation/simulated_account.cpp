// Draws plans from a seed without std's distributions, which differ between platforms.

#include "simulation/simulated_account.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace mailroom {

std::string simulated_prefix(std::uint64_t seed) {
  return fmt::format("{}{}-", simulated_login_start, seed);
}

TimePoint due_at(TimePoint start, std::int64_t n, double rate) {
  // A century is longer than any run, and far from the end of the clock's range.
  constexpr double century = 100.0 * 365 * 24 * 3600;
  const std::chrono::duration<double> offset(std::min(static_cast<double>(n - 1) / rate, century));
  return start + std::chrono::duration_cast<TimePoint::duration>(offset);
}

AccountPlan AccountPlanner::next() {
  // Always draws three times: the share of one kind must not shift the draws for another.
  const bool activates = draw(shares_.activate);
  const bool recovers = draw(shares_.recover);
  const bool suspends = draw(shares_.suspend);
  return {.activates = activates, .recovers = activates && recovers, .suspends = suspends};
}

bool AccountPlanner::draw(double percent) {
  // The standard specifies the generator's output, but not that of the distributions. The upper 53 bits give
  // a fraction below 1 without rounding.
  const double fraction = static_cast<double>(generator_() >> 11U) * 0x1p-53;
  return fraction < percent / 100.0;
}

}  // namespace mailroom
