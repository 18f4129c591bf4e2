// Plays an application and its users against a database, for mailroom simulate.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "process/stop_signal.hpp"
#include "simulation/emission_watch.hpp"
#include "simulation/simulated_rows.hpp"

namespace mailroom {

/// What to simulate.
struct SimulationRequest {
  std::int64_t accounts = 0;
  std::uint64_t seed = 0;
  int connections = 1;
  std::optional<double>
      rate;  ///< accounts per second over all connections; nullopt: 1,000 per transaction, without a wait
  Shares shares;
  std::optional<Milliseconds> delay;  ///< consume a token this long after its creation, emitted or not
  Milliseconds timeout{60000};        ///< fail after this time without an emission, or without the server
};

/// The progress of a simulation.
struct SimulationProgress {
  std::int64_t accounts = 0;
  std::int64_t waiting = 0;  ///< tokens that wait to be emitted, or for the delay
  int lost = 0;              ///< lost connections that have not reconnected yet
  std::string reason;        ///< of the last loss
};

/// What was done.
struct SimulationTally {
  std::int64_t accounts = 0;
  std::int64_t tokens = 0;
  std::int64_t activated = 0;
  std::int64_t recovered = 0;
  std::int64_t suspended = 0;
  std::int64_t expired = 0;  ///< tokens that should have been consumed, but were no longer usable by then
  LatencyHistogram latency;  ///< of every writing transaction
  TimePoint last_creation;
};

struct SimulationSummary {
  SimulationTally total;
  double seconds = 0;
  double accounts_per_second = 0;  ///< while accounts were being created
  bool stopped = false;            ///< a signal stopped it early
};

/// Runs `request` with one thread per connection, and polls for emissions over one more connection. Calls
/// `report` in the calling thread, about 5 to 50 times per second. Commits every transaction separately, so
/// that work done before an error or a signal is kept. Reconnects lost connections. Throws Error(failed) when
/// accounts of the seed exist or nothing is emitted, DatabaseError and ConnectionLost.
SimulationSummary simulate(const SimulationRequest& request,
                           const std::function<std::unique_ptr<Connection>()>& connect,
                           const StopSignal& stop,
                           const std::function<void(const SimulationProgress&)>& report);

}  // namespace mailroom
