// The accounts of a simulation, and the writes of applications and users to them and their tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "simulation/lasting_connection.hpp"

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

/// How many rows one transaction writes if no rate is set.
inline constexpr std::int64_t simulation_step = 1000;

/// A token as the simulation needs it. It expires in `seconds_left`, by the server's clock.
struct IssuedToken {
  std::int64_t id = 0;
  std::int64_t account = 0;
  std::int64_t seconds_left = 0;
};

/// The rows that simulate writes for one seed, over one connection. Each call is one statement in a
/// transaction of its own, committed when the call returns. If the connection is lost meanwhile, the call
/// checks after the reconnect whether the transaction was committed, and repeats it if not. Throws
/// DatabaseError or ConnectionLost.
class SimulatedRows {
 public:
  using Ids = std::vector<std::int64_t>;

  /// Prepares the statements. Call it for every connection that a LastingConnection makes for this.
  static void prepare(Connection& session);

  SimulatedRows(LastingConnection connection, std::uint64_t seed);

  /// Creates provisioned accounts number `first` to `last`; returns their ids in that order. Throws
  /// Error(failed) when one of the names is taken.
  Ids create(std::int64_t first, std::int64_t last);
  /// The activation tokens of `accounts`. Only reads.
  std::vector<IssuedToken> activation_tokens(const Ids& accounts);
  /// Consumes those of `tokens` that are neither expired nor consumed; returns their ids, sorted.
  Ids consume(const Ids& tokens);
  /// Issues a recovery token for each of `accounts`.
  std::vector<IssuedToken> recover(const Ids& accounts);
  /// Suspends those of `accounts` that are not; returns the number of all.
  std::int64_t suspend(const Ids& accounts);

 private:
  Ids insert(Connection& session, std::int64_t first, std::int64_t last);

  LastingConnection connection_;
  std::uint64_t seed_;
  std::string prefix_;
};

/// Removes accounts whose login begins with `login_prefix` and whose email ends as simulated ones do, and by
/// cascade their tokens: 1,000 per transaction, only accounts that exist at the start. After each transaction
/// calls `go_on` with the number removed so far, and ends when it returns false. Returns the number removed;
/// if the connection was lost during a step, only what its repetition removed counts.
std::int64_t remove_simulated_accounts(LastingConnection& connection, const std::string& login_prefix,
                                       const std::function<bool(std::int64_t)>& go_on);

}  // namespace mailroom
