#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "simulation/account_dealer.hpp"
#include "simulation/simulated_rows.hpp"
#include "simulation/simulation.hpp"
#include "simulation/waiting_tokens.hpp"

namespace mailroom {

/// State shared by the threads of a simulation.
struct PlayState {
  std::atomic<bool> stopping{false};
  std::atomic<std::int64_t> accounts{0};
  std::atomic<std::int64_t> waiting{0};
  std::atomic<std::int64_t> released{0};  ///< tokens that no longer wait
};

/// The clock of a simulation's schedule.
TimePoint now_of_play();

/// Simulates its share of the accounts over one connection, in one thread.
class SimulationWorker {
 public:
  /// Creates no account while more than `max_waiting` of its own tokens wait. All arguments must outlive
  /// this.
  SimulationWorker(LastingConnection& connection, const SimulationRequest& request, AccountDealer& dealer,
                   PlayState& state, std::size_t max_waiting);

  /// Returns when all accounts are done or PlayState::stopping is set. Throws what SimulatedRows throws.
  void run();

  /// Reports emitted ids. May be called from any thread.
  void deliver(const std::vector<IdRange>& emitted);
  /// Makes run() check PlayState::stopping. May be called from any thread.
  void wake();

  /// Valid after run() has returned.
  const SimulationTally& tally() const { return tally_; }

 private:
  void take_arrivals(TimePoint now);
  bool create_if_due(TimePoint now);
  void await_activation(const std::vector<std::int64_t>& accounts, const std::vector<AccountPlan>& plans);
  bool consume_some();
  void go_on_after(const std::vector<SimulatedToken>& tokens, const std::vector<std::int64_t>& consumed);
  void recover(const std::vector<SimulatedToken>& tokens);
  void suspend(const std::vector<std::int64_t>& accounts);
  void wait_for(const IssuedToken& issued, AccountPlan plan, bool is_recovery);
  void release(const std::vector<SimulatedToken>& tokens);
  void sleep();

  const SimulationRequest& request_;
  AccountDealer& dealer_;
  PlayState& state_;
  const std::size_t max_waiting_;
  const std::size_t step_;
  SimulatedRows rows_;
  SimulationTally tally_;
  std::optional<Deal> deal_;
  WaitingTokens waiting_;
  std::deque<SimulatedToken> ready_;
  std::vector<std::int64_t> to_suspend_;  ///< accounts that do not activate

  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<IdRange> inbox_;
};

}  // namespace mailroom
