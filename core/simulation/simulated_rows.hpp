// The rows of a simulation, and what applications and users do with them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "db/connection.hpp"
#include "selection/id_range.hpp"

namespace mailroom::simulation {

/// Together these distinguish simulated accounts from real ones; the domain is reserved, so no mail is
/// delivered.
inline constexpr std::string_view simulated_login_start = "sim-";
inline constexpr std::string_view simulated_email_end = "@simulate.mailroom.example";

/// Returns `sim-SEED-`. Account n of a seed has the login `sim-SEED-n`, and as email that login followed by
/// simulated_email_end.
std::string simulated_prefix(std::uint64_t seed);

/// Shares in percent: of accounts, and of those that activate. They are spread evenly: 25 selects each
/// fourth.
struct Shares {
  double activate = 0;
  double recover = 0;
};

/// How many of the first `count` a share selects; the statements count likewise.
std::int64_t selected_of(std::int64_t count, double percent);

/// What people did with tokens that were emitted.
struct SimulatedUse {
  std::int64_t activated = 0;
  std::int64_t recovered = 0;
  std::int64_t expired = 0;  ///< could no longer be consumed
  std::int64_t asked = 0;    ///< new recovery tokens
};

/// How many rows a transaction writes if no rate is set.
inline constexpr std::int64_t simulation_step = 1000;

/// The writes for one seed, each in a transaction of its own. They throw DatabaseError or ConnectionLost.
class SimulatedRows {
 public:
  SimulatedRows(db::Connection& connection, std::uint64_t seed);

  /// Creates provisioned accounts number `first` to `last`. Throws Error(failed) when one of the names is
  /// taken.
  void create_accounts(std::int64_t first, std::int64_t last);
  /// Consumes those of the tokens whose accounts `shares` selects, and asks for their recoveries.
  SimulatedUse use(const std::vector<selection::IdRange>& emitted, const Shares& shares);
  /// Sends messages number `first` to `last`, of 2 kB each, with the reference and the key `sim-SEED-mN`.
  void send_messages(std::int64_t first, std::int64_t last);

 private:
  db::Connection& connection_;
  std::uint64_t seed_;
  std::string prefix_;
};

/// Removes accounts and messages whose login or reference begins with `prefix` and whose address ends as
/// simulated ones do, with their tokens: 1,000 per transaction, only accounts that exist at the start. After
/// each transaction calls `go_on` with the number removed so far, and ends when it returns false. Returns the
/// number removed.
std::int64_t remove_simulated(db::Connection& connection, const std::string& prefix,
                              const std::function<bool(std::int64_t)>& go_on);

}  // namespace mailroom::simulation
