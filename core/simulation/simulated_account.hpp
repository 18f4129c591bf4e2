// The accounts of a simulation: names that set them apart, and what each of them does.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace mailroom {

/// Together these distinguish simulated accounts from real ones; the domain is reserved, so no mail is
/// delivered.
inline constexpr std::string_view simulated_login_start = "sim-";
inline constexpr std::string_view simulated_email_end = "@simulate.mailroom.example";

/// Returns `sim-SEED-`. Account n of a seed has the login `sim-SEED-n`, and as email that login followed by
/// simulated_email_end.
std::string simulated_prefix(std::uint64_t seed);

/// The time at which to create account `n` (from 1 on) of a run at `rate` accounts per second: evenly spaced,
/// the first at `start`. `rate` must be positive.
TimePoint due_at(TimePoint start, std::int64_t n, double rate);

/// Shares of accounts in percent: of all accounts, but `recover` of those that activate.
struct Shares {
  double activate = 0;
  double recover = 0;
  double suspend = 0;
};

/// The plan for one account.
struct AccountPlan {
  bool activates = false;
  bool recovers = false;  ///< only together with activates
  bool suspends = false;
};

/// Plans accounts 1, 2, 3 … of a seed. The same seed gives the same plans on every platform, and a higher
/// share only adds accounts to those of a lower one.
class AccountPlanner {
 public:
  AccountPlanner(std::uint64_t seed, const Shares& shares) : generator_(seed), shares_(shares) {}

  AccountPlan next();

 private:
  bool draw(double percent);

  std::mt19937_64 generator_;
  Shares shares_;
};

}  // namespace mailroom
