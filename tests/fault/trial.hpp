#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fault/crew.hpp"
#include "fault/trial_rig.hpp"

namespace mailroom::test {

/// A trial of writers and collectors, with the oracle at the end.
class Trial : public TrialRig {
 public:
  struct Options {
    int collectors = 3;
    int writers = 10;
    int limit = 10;
    WriteLoad::Options load{.prepares = false, .tolerant = true, .pause_ms = 20};
    bool silent = false;              ///< without the trigger that notifies
    bool slow_triggers = true;        ///< one insert in twenty takes up to 30 ms after drawing its id
    std::string collectors_reach{};   ///< connection string of the collectors, if not the cluster's
    bool writers_too = false;         ///< the writers use that connection string too
    std::vector<std::string> more{};  ///< more options of the collectors
    std::map<std::string, std::string> environment{};
    /// The queues, each with the action that it takes; empty: all.
    std::map<std::string, std::string> queues{{"mailroom", ""}};
    std::vector<std::string> serving{};  ///< the queues of each collector, as in --queue
  };

  Trial(Cluster& cluster, const Plan& plan, Options options);
  ~Trial() override { end_writers(); }

  Crew& crew() { return *crew_; }
  int limit() const { return options_.limit; }
  /// Makes the oracle read the same database of `cluster` from now on.
  void move_to(const Cluster& cluster) { use(cluster); }
  /// Also ends the measurement of the longest gap.
  void stop_writers();

  /// Allows this many more repeated tokens, all of one queue: any of `queues`, or of all if it is empty.
  void allow_repeats(int tokens, const std::vector<std::string>& queues = {});
  /// Expects the tokens of a rewind of `queue` once more.
  void expect_again(const std::string& queue, Replay replay) { replays_[queue].push_back(std::move(replay)); }
  /// Counts tokens that were leased when they should not have been.
  void count_untimely(std::size_t tokens) { outcome_.tally.untimely += tokens; }
  /// Allows emitted tokens that do not exist in the end.
  void allow_strange() { strange_allowed_ = true; }
  /// Call it when the server accepts connections again: expects the next line of a collector. finish() notes
  /// how long the slowest took.
  void expect_delivery_again();

  /// Makes finish() wait only briefly for missing tokens.
  void give_up() { patience_ = std::chrono::seconds(1); }
  /// Stops the writers, lets the queue drain, stops the collectors, and judges all output.
  Outcome finish(int rounds);

 private:
  void create_queues(db::Connection& connection) const;
  void judge();
  void judge_queue(const std::string& queue, const std::string& action, const Emissions& emitted);

  Options options_;
  std::unique_ptr<Crew> crew_;
  std::size_t allowed_ = 0;                          ///< of all queues together
  std::map<std::string, std::size_t> allowed_in_{};  ///< of each queue
  std::map<std::string, std::vector<Replay>> replays_{};
  bool strange_allowed_ = false;
  std::chrono::seconds patience_{120};
  std::optional<Milliseconds> slowest_recovery_{};
};

/// Few gaps, and rarely more than one batch in flight: most claims are the usual case.
Trial::Options calm_queue(int collectors);

}  // namespace mailroom::test
