#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "accounts/simulated_account.hpp"
#include "base/clock.hpp"

namespace mailroom {

/// How many rows one transaction writes where no rate is asked for.
inline constexpr std::int64_t simulation_step = 1000;

/// When account `n` (from 1 on) of a run at `rate` accounts a second is to be made: evenly spaced, the first
/// at `start`. `rate` is positive.
TimePoint due_at(TimePoint start, std::int64_t n, double rate);

/// Accounts that one transaction makes: numbers `first` and following, one for each fate, not before `due`.
struct Deal {
  std::int64_t first = 0;
  std::vector<Fate> fates;
  TimePoint due;
};

/// Hands out accounts 1 to N in order, to any number of threads: one at a time at a rate, else 1,000 at a
/// time and at once. The fate of an account depends on its number and the plan alone.
class AccountDealer {
 public:
  AccountDealer(std::int64_t accounts, std::optional<double> rate, FatePlan plan, TimePoint start)
      : accounts_(accounts), rate_(rate), plan_(plan), start_(start) {}

  /// Nothing when all are handed out.
  std::optional<Deal> take();

 private:
  const std::int64_t accounts_;
  const std::optional<double> rate_;
  std::mutex mutex_;
  FatePlan plan_;
  const TimePoint start_;
  std::int64_t dealt_ = 0;
};

}  // namespace mailroom
