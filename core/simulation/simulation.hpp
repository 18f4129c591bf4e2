// Plays an application and its users against a database, for mailroom simulate.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/clock.hpp"
#include "process/stop_signal.hpp"
#include "simulation/simulated_rows.hpp"

namespace mailroom::simulation {

/// What to simulate.
struct SimulationRequest {
  std::int64_t accounts = 0;
  std::int64_t messages = 0;  ///< after the accounts
  std::uint64_t seed = 0;
  std::optional<double> rate;  ///< rows per second, one per transaction; nullopt: 1,000 per transaction
  Shares shares;
  Milliseconds timeout{60000};  ///< fail when tokens wait and none is emitted for so long
};

/// What was done.
struct SimulationTally {
  std::int64_t accounts = 0;
  std::int64_t messages = 0;
  std::int64_t waiting = 0;  ///< tokens that are to be consumed, and that nobody has emitted yet
  SimulatedUse used;
  double seconds = 0;
};

/// The time at which to write row `n` (from 1 on) at `rate` rows per second: evenly spaced, the first at
/// `start`. `rate` must be positive.
TimePoint due_at(TimePoint start, std::int64_t n, double rate);

/// Runs `request`, until it is done or a stop is requested. Calls `report` between the transactions, and
/// about 50 times per second while it waits. Throws Error(failed) when accounts of the seed exist or nothing
/// is emitted, DatabaseError and ConnectionLost.
SimulationTally simulate(db::Connection& connection, const SimulationRequest& request,
                         process::StopSignal& stop,
                         const std::function<void(const SimulationTally&)>& report);

}  // namespace mailroom::simulation
