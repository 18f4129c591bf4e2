#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>

#include "fault/fault.hpp"
#include "support/test_sender.hpp"
#include "support/write_load.hpp"

namespace mailroom::test {

/// One database with writers and senders, and a relay that does what the fault says. The oracle reads what
/// the relay has taken, and compares it with what is recorded.
class SendTrial {
 public:
  struct Options {
    int senders = 3;
    int writers = 6;
    int limit = 5;
    TestRelay::Options relay{};
    bool pipelining = true;            ///< the relay offers it, as nearly every relay does
    TestRelay* first_relay = nullptr;  ///< tried before the trial's; what it takes counts too
    std::map<std::string, std::string> environment{};
    std::chrono::seconds patience{120};  ///< of finish()
  };

  SendTrial(Cluster& cluster, const Plan& plan, Options options);
  ~SendTrial();
  SendTrial(const SendTrial&) = delete;
  SendTrial& operator=(const SendTrial&) = delete;

  TestRelay& relay() { return relay_; }
  TestSender& sender(int index) { return *senders_.at(static_cast<std::size_t>(index)); }
  /// Sends `signal` to a sender, waits until it has ended, and starts another one. Returns its exit status.
  int replace(int index, int signal);
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  void pause(int from_ms, int to_ms);
  std::unique_ptr<Connection> connect() const;
  /// What the relays have taken.
  std::vector<TakenMail> taken() const;
  /// Waits until the relays have taken another mail.
  bool delivers_again() const;
  /// Expects that at the end every mail is accepted, and at its first attempt that counts.
  void allow_no_other_attempt() { is_first_attempt_expected_ = true; }
  /// Allows this many mails more than tokens.
  void allow_repeats(int mails) { allowed_ += mails; }
  int limit() const { return options_.limit; }
  void expect(bool met, const std::string& what);
  void note(std::string figure) { outcome_.notes.push_back(std::move(figure)); }

  /// Stops the writers, makes deferred tokens due until none is left, stops the senders, and judges.
  Outcome finish(int rounds);

 private:
  std::unique_ptr<TestSender> make() const;
  bool drains();
  void judge();
  void judge_records(Connection& connection, const std::set<std::int64_t>& mailed);

  Options options_;
  std::string database_;
  std::string conninfo_;
  std::string admin_;
  std::mt19937_64 random_;
  TestRelay relay_;
  std::vector<std::unique_ptr<TestSender>> senders_;
  std::vector<std::string> logs_;  ///< of senders that have ended
  std::unique_ptr<WriteLoad> load_;
  int allowed_ = 0;
  bool is_first_attempt_expected_ = false;
  std::chrono::seconds patience_;
  Outcome outcome_;
};

/// True at `step` for a share of the recipients, chosen by their address: 1 in `share`.
bool is_chosen(const RelayMoment& moment, RelayStep step, int share);

}  // namespace mailroom::test
