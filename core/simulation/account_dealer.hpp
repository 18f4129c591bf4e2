#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "simulation/simulated_account.hpp"

namespace mailroom {

/// How many rows one transaction writes if no rate is set.
inline constexpr std::int64_t simulation_step = 1000;

/// The time at which to create account `n` (from 1 on) of a run at `rate` accounts per second: evenly spaced,
/// the first at `start`. `rate` must be positive.
TimePoint due_at(TimePoint start, std::int64_t n, double rate);

/// Accounts that one transaction creates: numbers from `first` on, one for each plan, not before `due`.
struct Deal {
  std::int64_t first = 0;
  std::vector<AccountPlan> plans;
  TimePoint due;
};

/// Deals accounts 1 to N in order to any number of threads: one at a time at a rate, otherwise 1,000 at a
/// time without a wait. The outcome of an account depends only on its number and the plan.
class AccountDealer {
 public:
  AccountDealer(std::int64_t accounts, std::optional<double> rate, AccountPlanner plan, TimePoint start)
      : accounts_(accounts), rate_(rate), planner_(plan), start_(start) {}

  /// Returns nullopt when all accounts have been dealt.
  std::optional<Deal> take();

 private:
  const std::int64_t accounts_;
  const std::optional<double> rate_;
  std::mutex mutex_;
  AccountPlanner planner_;
  const TimePoint start_;
  std::int64_t dealt_ = 0;
};

}  // namespace mailroom
