#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "accounts/account_dealer.hpp"
#include "accounts/simulated_rows.hpp"
#include "accounts/simulation.hpp"
#include "accounts/waiting_tokens.hpp"

namespace mailroom {

/// What the threads of a play tell each other.
struct PlayState {
  std::atomic<bool> stopping{false};
  std::atomic<std::int64_t> accounts{0};
  std::atomic<std::int64_t> waiting{0};
  std::atomic<std::int64_t> released{0};  ///< tokens that waited and do so no more
};

/// The clock that a play keeps its schedule by.
TimePoint now_of_play();

/// Plays its part of the accounts over one connection, in one thread.
class SimulationWorker {
 public:
  /// Makes no account while more than `most_waiting` tokens of its own wait. Everything given outlives this.
  SimulationWorker(LastingConnection& connection, const SimulationRequest& request, AccountDealer& dealer,
                   PlayState& state, std::size_t most_waiting);

  /// Returns when all is played or PlayState::stopping is set. Throws what SimulatedRows does.
  void run();

  /// From any thread: these ids have been emitted.
  void deliver(const std::vector<IdRange>& emitted);
  /// From any thread: look at PlayState::stopping.
  void wake();

  /// After run() has ended.
  const SimulationTally& tally() const { return tally_; }

 private:
  void take_arrivals(TimePoint now);
  bool create_if_due(TimePoint now);
  void await_activation(const std::vector<std::int64_t>& accounts, const std::vector<Fate>& fates);
  bool consume_some();
  void go_on_after(const std::vector<SimulatedToken>& tokens, const std::vector<std::int64_t>& consumed);
  void recover(const std::vector<SimulatedToken>& tokens);
  void suspend(const std::vector<std::int64_t>& accounts);
  void wait_for(const IssuedToken& issued, Fate fate, bool is_recovery);
  void release(const std::vector<SimulatedToken>& tokens);
  void sleep();

  const SimulationRequest& request_;
  AccountDealer& dealer_;
  PlayState& state_;
  const std::size_t most_waiting_;
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
