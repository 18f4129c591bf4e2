// Decides what a simulation does next, without a thread or a session of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "selection/id_range.hpp"
#include "simulation/simulated_rows.hpp"
#include "simulation/simulation.hpp"

namespace mailroom {

/// Accounts that one transaction creates: numbers from `first` on, one for each plan, not before `due`.
struct Deal {
  std::int64_t first = 0;
  std::vector<AccountPlan> plans;
  TimePoint due;
};

/// A token to be consumed.
struct SimulatedToken {
  std::int64_t id = 0;
  std::int64_t account = 0;
  bool is_recovery = false;
  TimePoint until;  ///< when it expires, or when its delay ends
};

/// Takes the accounts of a simulation through their plans: what to do next, and what was done. Not
/// thread-safe.
class SimulationSchedule {
 public:
  using Ids = SimulatedRows::Ids;

  SimulationSchedule(const SimulationRequest& request, TimePoint start);

  /// The next accounts to create: one at a rate, else up to 1,000; nullopt if all have been dealt.
  std::optional<Deal> next_deal();
  /// The next tokens to consume, as many at most; empty if none is ready.
  std::vector<SimulatedToken> take_ready();
  /// The next accounts to suspend, as many at most. Suspensions come last.
  Ids take_to_suspend();
  /// True if all accounts are created and no token waits or is ready.
  bool is_over() const;

  /// Call when the accounts of a deal were created; returns those that activate.
  Ids add_accounts(const Deal& deal, const Ids& accounts);
  /// Lets new tokens wait, except those that add_emissions() has received after the first `seen` ranges.
  void add_tokens(const std::vector<IssuedToken>& issued, bool is_recovery, std::size_t seen, TimePoint now);
  /// Call when those of `tokens` that were usable, `consumed` in order, were consumed; returns the accounts
  /// that recover next.
  Ids finish(const std::vector<SimulatedToken>& tokens, const Ids& consumed);

  /// Makes tokens ready. Returns false if none of these waits.
  bool add_emissions(const std::vector<IdRange>& emitted);
  std::size_t emissions() const { return emitted_.size(); }
  /// Call only if no add_tokens() that has seen emissions can follow.
  void forget_emissions() { emitted_.clear(); }
  /// Ends the delay of tokens, or their wait when they expire. Returns false if none is due.
  bool release_due(TimePoint now);

  std::int64_t waiting() const { return std::ssize(waiting_); }
  SimulationTally& total() { return total_; }

 private:
  const SimulationRequest& request_;
  const TimePoint start_;
  const std::int64_t step_;  ///< rows in a transaction
  AccountPlanner planner_;
  std::int64_t dealt_ = 0;
  std::map<std::int64_t, AccountPlan> plans_;       ///< of accounts that activate and are not done, by id
  std::map<std::int64_t, SimulatedToken> waiting_;  ///< by id
  std::deque<SimulatedToken> ready_;
  std::deque<std::int64_t> to_suspend_;
  std::vector<IdRange> emitted_;
  SimulationTally total_;
};

}  // namespace mailroom
