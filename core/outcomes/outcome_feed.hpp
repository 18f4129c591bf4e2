// Hands kept outcomes over by a carrier, and removes those that the application has taken.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/log.hpp"
#include "delivery/dispatcher.hpp"
#include "outcomes/kept_outcomes.hpp"

namespace mailroom {

/// One round after the other: what is due is handed over, and each answer recorded. An outcome is removed
/// only after it was acknowledged, so a crash repeats those of a round.
class OutcomeFeed {
 public:
  /// `in_flight`: lines of a round, which are handed over at the same time. The references must outlive this.
  OutcomeFeed(std::unique_ptr<Carrier> carrier, const Dispatcher::Options& options, Log& log);

  /// Hands over what is due, and waits for the answers. Returns how many were taken; 0 also while the
  /// application takes nothing.
  int round(KeptOutcomes& kept);
  /// Gives up what has no answer; from another thread or a signal's turn.
  void cancel() { dispatcher_.cancel(); }
  /// The time until the application takes something; nullopt if it does now.
  std::optional<std::chrono::seconds> time_to_admission() const { return dispatcher_.time_to_admission(); }

 private:
  void record(KeptOutcomes& kept, const std::vector<KeptOutcome>& outcomes, std::vector<Dispatched> answers);

  int in_flight_;
  Dispatcher dispatcher_;
  Log& log_;
};

/// How long an outcome waits that was refused so often: 15 s, 30 s, 1, 2 and then 4 minutes, as a token does.
Milliseconds pause_of_outcome(int attempts);

}  // namespace mailroom
