// Spares the consumers of a database a relay or server that one of them found unavailable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "claim/queue_session.hpp"
#include "delivery/breaker.hpp"

namespace mailroom {

/// What the consumers of a database know together about the other sides of a sink, such as its relays.
class SharedBreakers {
 public:
  /// `probe_time`: how long others wait for a probe of this sink.
  SharedBreakers(std::vector<std::string> names, Milliseconds probe_time);

  /// Tells the others what `own`, one for each name in their order, has that they do not know, and returns
  /// the breakers as all know them now. Asks for the probe that is due, if there is one. `heard`: others may
  /// have changed something. nullopt if there is nothing to exchange.
  std::optional<std::vector<Breaker>> exchange(SinkBoard& board, const std::vector<Breaker>& own, bool heard);
  /// Which of them are unavailable, and why: `relay.example:25 is unavailable: connection refused`, separated
  /// by semicolons. Empty if none is.
  std::string unavailability(const std::vector<Breaker>& own) const;

 private:
  std::vector<std::string> names_;
  Milliseconds probe_time_;
  std::vector<Breaker> shared_;
  std::vector<bool> holds_probe_;  ///< the next probe is this sink's
};

}  // namespace mailroom
