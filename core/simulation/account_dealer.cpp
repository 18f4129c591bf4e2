#include "simulation/account_dealer.hpp"

#include <algorithm>

namespace mailroom {

TimePoint due_at(TimePoint start, std::int64_t n, double rate) {
  // A century is longer than any run, and far from the end of the clock's range.
  constexpr double century = 100.0 * 365 * 24 * 3600;
  const std::chrono::duration<double> offset(std::min(static_cast<double>(n - 1) / rate, century));
  return start + std::chrono::duration_cast<TimePoint::duration>(offset);
}

std::optional<Deal> AccountDealer::take() {
  const std::lock_guard lock(mutex_);
  if (dealt_ >= accounts_) return std::nullopt;
  Deal deal{.first = dealt_ + 1, .plans = {}, .due = rate_ ? due_at(start_, dealt_ + 1, *rate_) : start_};
  const auto count = rate_ ? 1 : std::min(simulation_step, accounts_ - dealt_);
  deal.plans.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    deal.plans.push_back(planner_.next());
  dealt_ += count;
  return deal;
}

}  // namespace mailroom
