#pragma once

#include <functional>
#include <map>

#include "fault/trial_rig.hpp"

namespace mailroom::test {

/// A trial of consumers that hand tokens over to another side, which is the judge: it says what it has taken,
/// and that is compared with what is recorded.
class DeliveryTrial : public TrialRig {
 public:
  struct Options {
    int consumers = 3;
    int writers = 6;
    int producers = 0;                   ///< of messages
    std::chrono::seconds patience{120};  ///< of finish(), with no token that gets a final state
  };

  TestConsumer& consumer(int index) { return *consumers_.at(static_cast<std::size_t>(index)); }
  /// Sends `signal` to a consumer, waits until it has ended, and starts another one. Returns its exit status.
  int replace(int index, int signal);
  /// Allows this many tokens to be taken again.
  void allow_repeats(int tokens) { allowed_ += tokens; }
  /// Expects that at the end every token is accepted, and at its first attempt that counts.
  void allow_no_other_attempt() { is_first_attempt_expected_ = true; }

  /// Stops the writers, makes deferred tokens due until none is left, stops the consumers, and judges.
  Outcome finish(int rounds);

 protected:
  DeliveryTrial(const Cluster& cluster, const Plan& plan, Options options)
      : TrialRig(cluster, plan), options_(std::move(options)), is_broken_(plan.sabotage != nullptr) {}
  /// Starts the consumers, and then the writers.
  void begin();
  /// Before the receiver goes.
  void end();
  virtual std::unique_ptr<TestConsumer> hire() const = 0;
  /// How often the receiver has taken each token. May expect more, and allow more repeats.
  virtual std::map<std::int64_t, int> judge_taken() = 0;
  /// True if the receiver has heard of a mail to that address, or cannot tell.
  virtual bool has_seen(const std::string& address) const {
    static_cast<void>(address);
    return true;
  }

 private:
  bool drains();
  void judge();
  void judge_records(db::Connection& connection, const std::map<std::int64_t, int>& taken);
  void judge_expired(db::Connection& connection, std::int64_t expired);

  Options options_;
  bool is_broken_;  ///< a broken protocol leaves tokens for ever
  std::vector<std::unique_ptr<TestConsumer>> consumers_;
  std::vector<std::string> logs_;  ///< of those that have ended
  int allowed_ = 0;
  bool is_first_attempt_expected_ = false;
};

}  // namespace mailroom::test
