#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "accounts/simulated_account.hpp"
#include "base/clock.hpp"
#include "base/id_range.hpp"

namespace mailroom {

/// A token that is to be consumed, and what its account has in store.
struct SimulatedToken {
  std::int64_t id = 0;
  std::int64_t account = 0;
  Fate fate;
  bool is_recovery = false;
};

/// Tokens that wait for a collector or for a moment. Both ways out take time by what leaves, not by what
/// waits.
class WaitingTokens {
 public:
  void add(const SimulatedToken& token, TimePoint until);

  /// Removes and returns those with an id in `range`.
  std::vector<SimulatedToken> take(const IdRange& range);
  /// Removes and returns those whose moment is `now` or has passed, in the order of the moments.
  std::vector<SimulatedToken> take_until(TimePoint now);

  /// The next moment; nothing when no token waits.
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
