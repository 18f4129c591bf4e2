#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "accounts/lasting_connection.hpp"

namespace mailroom {

/// A token as the play needs it. `seconds_left` until it expires, by the server's clock.
struct IssuedToken {
  std::int64_t id = 0;
  std::int64_t account = 0;
  std::int64_t seconds_left = 0;
};

/// The rows that simulate writes for one seed, over one connection. Each call but activation_tokens is one
/// statement and one transaction, committed when it returns. If the connection is lost with it, the next one
/// tells whether it was kept, and it is done if not. Throws DatabaseError or ConnectionLost.
class SimulatedRows {
 public:
  /// Prepares the statements on `connection`, which outlives this and has no other SimulatedRows.
  SimulatedRows(LastingConnection& connection, std::uint64_t seed);

  /// Makes provisioned accounts number `first` to `last`; returns their ids in that order. Throws
  /// Error(failed) when one of the names is taken.
  std::vector<std::int64_t> create(std::int64_t first, std::int64_t last);
  /// The activation tokens of `accounts`. Only reads.
  std::vector<IssuedToken> activation_tokens(const std::vector<std::int64_t>& accounts);
  /// Consumes those of `tokens` that are neither expired nor consumed; returns their ids.
  std::vector<std::int64_t> consume(const std::vector<std::int64_t>& tokens);
  /// Issues a recovery token for each of `accounts`.
  std::vector<IssuedToken> recover(const std::vector<std::int64_t>& accounts);
  /// Suspends those of `accounts` that are not; returns how many.
  std::int64_t suspend(const std::vector<std::int64_t>& accounts);

 private:
  std::vector<std::int64_t> insert(Connection& session, std::int64_t first, std::int64_t last);

  LastingConnection& connection_;
  std::uint64_t seed_;
  std::string prefix_;
};

/// Removes accounts, and by cascade their tokens, whose login begins with `login_prefix` and whose email ends
/// as simulated ones do; 1,000 a transaction, those only that exist at the start. Calls `go_on` with the
/// number removed so far after each, and ends when it says no. Returns the number removed; of a step with
/// which the connection was lost, what the next one finds left.
std::int64_t remove_simulated_accounts(LastingConnection& connection, const std::string& login_prefix,
                                       const std::function<bool(std::int64_t)>& go_on);

}  // namespace mailroom
