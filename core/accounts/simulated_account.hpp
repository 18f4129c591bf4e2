#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace mailroom {

/// Both together tell the accounts that simulate makes from real ones; the domain is reserved, so nobody is
/// mailed.
inline constexpr std::string_view simulated_login_start = "sim-";
inline constexpr std::string_view simulated_email_end = "@simulate.mailroom.example";

/// `sim-SEED-`. Account n of a seed has this and n as its login, and that and simulated_email_end as its
/// email.
std::string simulated_prefix(std::uint64_t seed);

/// What becomes of an account, in percent: of all accounts, but `recover` of those that activate.
struct Shares {
  double activate = 0;
  double recover = 0;
  double suspend = 0;
};

/// What becomes of one account.
struct Fate {
  bool activates = false;
  bool recovers = false;  ///< only ever together with activates
  bool suspends = false;
};

/// Decides the fates of account 1, 2, 3 … of a seed. The same seed gives the same fates on every platform,
/// and a higher share only adds to those that a lower one chose.
class FatePlan {
 public:
  FatePlan(std::uint64_t seed, const Shares& shares) : generator_(seed), shares_(shares) {}

  Fate next();

 private:
  bool draw(double percent);

  std::mt19937_64 generator_;
  Shares shares_;
};

}  // namespace mailroom
