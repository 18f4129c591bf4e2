#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accounts/latency.hpp"
#include "accounts/simulated_account.hpp"
#include "base/stop_signal.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// What to play.
struct SimulationRequest {
  std::int64_t accounts = 0;
  std::uint64_t seed = 0;
  int connections = 1;
  std::optional<double>
      rate;  ///< accounts a second over all connections; without it 1,000 a transaction, at once
  Shares shares;
  std::optional<Milliseconds> delay;  ///< a token is consumed so long after it was made, emitted or not
  Milliseconds timeout{60000};        ///< without an emission, or the server, for so long the play fails
};

/// How far a play is.
struct SimulationProgress {
  std::int64_t accounts = 0;
  std::int64_t waiting = 0;  ///< tokens that wait to be emitted, or for the delay
  int lost = 0;              ///< connections that are lost, and not yet made again
  std::string reason;        ///< of the last loss
};

/// What one connection, or all together, did.
struct SimulationTally {
  std::int64_t accounts = 0;
  std::int64_t tokens = 0;
  std::int64_t activated = 0;
  std::int64_t recovered = 0;
  std::int64_t suspended = 0;
  std::int64_t expired =
      0;  ///< tokens that were to be consumed, but were not usable any more when their turn came
  LatencyHistogram latency;  ///< of every transaction that wrote
  TimePoint last_creation;

  void merge(const SimulationTally& other);
};

struct SimulationSummary {
  SimulationTally total;
  double seconds = 0;
  double accounts_per_second = 0;  ///< while accounts were being made
  bool stopped = false;            ///< a signal ended it before its time
};

/// Plays `request`, with one thread for each of its connections, and one look after the other over a further
/// one for what collectors emit. `report` is called in the calling thread, some 5 to 50 times a second. Every
/// transaction is committed on its own, so that what was done before an error or a signal stays. A connection
/// that is lost is made again. Throws Error(failed) when accounts of the seed exist or nothing is emitted,
/// DatabaseError and ConnectionLost.
SimulationSummary simulate(const SimulationRequest& request,
                           const std::function<std::unique_ptr<Connection>()>& connect,
                           const StopSignal& stop,
                           const std::function<void(const SimulationProgress&)>& report);

}  // namespace mailroom
