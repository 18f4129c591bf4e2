#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/id_range.hpp"
#include "simulation/simulated_account.hpp"

namespace mailroom {

/// A token to be consumed, and the plan of its account.
struct SimulatedToken {
  std::int64_t id = 0;
  std::int64_t account = 0;
  AccountPlan plan;
  bool is_recovery = false;
};

/// Tokens that wait for a collector or for a point in time. Removal takes time by the number removed, not by
/// the number waiting.
class WaitingTokens {
 public:
  void add(const SimulatedToken& token, TimePoint until);

  /// Removes and returns the tokens with an id in `range`.
  std::vector<SimulatedToken> take(const IdRange& range);
  /// Removes and returns the tokens that wait until `now` or earlier, in time order.
  std::vector<SimulatedToken> take_until(TimePoint now);

  /// The earliest time for which a token waits; nullopt if none waits.
  std::optional<TimePoint> earliest() const;
  std::size_t size() const { return tokens_.size(); }

 private:
  struct Entry {
    SimulatedToken token;
    TimePoint until;
  };

  std::map<std::int64_t, Entry> tokens_;
  std::set<std::pair<TimePoint, std::int64_t>> moments_;
};

}  // namespace mailroom
