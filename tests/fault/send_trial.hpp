#pragma once

#include <atomic>
#include <mutex>
#include <set>

#include "fault/delivery_trial.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test {

/// A trial of senders, and a relay that does what the fault says.
class SendTrial : public DeliveryTrial {
 public:
  struct Options {
    int senders = 3;
    int writers = 6;
    int producers = 0;  ///< of messages
    int limit = 5;
    TestRelay::Options relay{};
    /// The relay offers it, as most do, and CHUNKING in one of the two ways of notifying, which the faults
    /// run in.
    bool pipelining = true;
    TestRelay* first_relay = nullptr;  ///< tried before the trial's; what it takes counts too
    std::map<std::string, std::string> environment{};
    std::chrono::seconds patience{120};  ///< of finish()
  };

  SendTrial(Cluster& cluster, const Plan& plan, Options options);
  ~SendTrial() override { end(); }

  TestRelay& relay() { return relay_; }
  /// What the relays have taken.
  std::vector<TakenMail> taken() const;
  /// Waits until the relays have taken another mail.
  bool delivers_again() const;
  int limit() const { return options_.limit; }

 private:
  std::unique_ptr<TestConsumer> hire() const override;
  std::map<std::int64_t, int> judge_taken() override;
  bool has_seen(const std::string& address) const override { return seen_.contains(address); }
  void judge_producers(const MessageNotes& notes);

  Options options_;
  std::set<std::string> seen_;  ///< recipients that a relay has heard of
  TestRelay relay_;
};

/// True at `step` for a share of the recipients, chosen by their address: 1 in `share`.
bool is_chosen(const RelayMoment& moment, RelayStep step, int share);

}  // namespace mailroom::test
