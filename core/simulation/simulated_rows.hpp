// The writes of a simulation: what applications and their users do to accounts and tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulation/lasting_connection.hpp"

namespace mailroom {

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
