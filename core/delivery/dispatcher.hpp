// Drives a carrier: which message leaves when and to which endpoint, and which is tried again.
//
// It decides while a batch is leased. It does not decide whether a token is mailed at all, nor when a later
// batch tries it again (delivery_policy), does not know the database, and does not read replies (the carriers
// do).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/spool.hpp"
#include "base/threads.hpp"
#include "delivery/answer.hpp"
#include "delivery/carrier.hpp"
#include "delivery/endpoint.hpp"
#include "delivery/refusal_memory.hpp"

namespace mailroom::delivery {

/// What became of a message.
struct Dispatched {
  Answer answer;
  bool is_final = true;       ///< false: a limit has refused the message, which is tried again
  bool may_be_taken = false;  ///< an earlier try, in the time that it is sent again, was not answered
  TimePoint at{};             ///< when it got its answer
};

/// Keeps answers, and wakes the sink once for a batch: to wake a thread costs as much as a tenth of a
/// delivery. The dispatcher's mutex guards it.
class DispatchResults {
 public:
  /// A message of the batch is on its way.
  void expect(std::int64_t batch) { ++unfinished_[batch]; }
  /// An answer that is not final.
  void note(Dispatched dispatched) { done_.push_back(std::move(dispatched)); }
  /// The final answer to a message of the batch.
  void conclude(std::int64_t batch, Dispatched dispatched);
  /// More messages of the batch come, until filled(): it is not finished, and nobody waits for it.
  void fill(std::int64_t batch) { filling_ = batch; }
  void filled() { filling_.reset(); }
  /// Of the batches that are not being filled the fewest messages without a final answer; nullopt if there is
  /// none.
  std::optional<std::size_t> fewest_unfinished() const;

  /// Readable when every message of a batch has its final answer; take() ends that.
  int fd() const { return ready_.fd(); }
  bool are_ready() const { return ready_.is_set(); }
  std::vector<Dispatched> take();
  /// Waits until every message has its final answer; false if it is `until` before.
  bool wait(std::unique_lock<std::mutex>& lock, TimePoint until);

 private:
  EventFd ready_;
  std::vector<Dispatched> done_;
  std::map<std::int64_t, std::size_t> unfinished_;  ///< how many messages of each batch have no final answer
  std::optional<std::int64_t> filling_;
  std::condition_variable finished_;
};

/// Delivers messages by a carrier, several at the same time. Every submitted message gets one final answer.
/// It goes to the first endpoint that is available; one that refuses it as too much gets it again, for as
/// long as Pace::longest_wait. Learns at which rate, and how many at once, an endpoint takes messages. A
/// thread keeps the carrier busy. All functions are for one other thread.
class Dispatcher {
 public:
  struct Options {
    int in_flight = 64;               ///< messages at the carrier at the same time
    Milliseconds probe_time{30'000};  ///< how long others wait for a probe of this process
    /// How long a message that may have been taken is sent again; 0: never, as the receiver could not tell
    /// that it has it.
    Milliseconds resend_for{0};
    std::optional<config::Rate> rate{};  ///< at which messages leave at most
    std::uint64_t seed = 0;              ///< of jitter
  };

  Dispatcher(std::unique_ptr<Carrier> carrier, Options options);
  /// cancel(), then ends the carrier.
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Takes a message with its body, which it sets; returns at once. Messages belong to the batch whose number
  /// they have. One that waits for its turn is given up at `expires_at`.
  void submit(Message message, SpooledText body, TimePoint expires_at = TimePoint::max());
  /// More messages of the batch are submitted, until filled(): what is answered of it meanwhile wakes nobody.
  void fill(std::int64_t batch) {
    const std::lock_guard lock(mutex_);
    results_.fill(batch);
  }
  void filled();
  /// Becomes readable when every message of a batch has its final answer; take() ends that.
  int fd() const { return results_.fd(); }
  /// True if that is so now.
  bool has_finished_batch() const { return results_.are_ready(); }
  /// The answers since the last call, in the order in which they came.
  std::vector<Dispatched> take() {
    const std::lock_guard lock(mutex_);
    return results_.take();
  }
  /// The number of messages without a final answer.
  std::size_t unfinished();
  /// Waits until every message has its final answer; false if it is `until` before.
  bool wait(TimePoint until) {
    std::unique_lock lock(mutex_);
    return results_.wait(lock, until);
  }
  /// A clearance has been given or refused.
  void clear() { news_.signal(); }
  /// True if an endpoint has answered a message a moment ago.
  bool is_answering() const {
    const std::lock_guard lock(mutex_);
    return endpoints_.is_answering(steady_now());
  }
  /// True while an endpoint is unavailable, and a message is looked for that it takes: most of those that are
  /// submitted are given back at once, and all that have not left when the search ends.
  bool is_searching() const {
    const std::lock_guard lock(mutex_);
    return endpoints_.is_searching();
  }
  /// Gives up every message that has not left, or each of one batch: deferred without counting.
  void give_back(std::optional<std::int64_t> batch = std::nullopt);
  /// Gives up every message without an answer: unknown if it was sent, otherwise deferred without counting.
  /// Returns when all have their answer, which takes a moment, however long the receiver hangs.
  void cancel();

  /// How the endpoints are, in their order; to share with other processes.
  std::vector<Breaker> breakers() const {
    const std::lock_guard lock(mutex_);
    return endpoints_.breakers(wall_now());
  }
  /// Replaces the breakers; not one that a message has changed since it was as in `seen`, nor that of an
  /// endpoint that answers this process.
  void set_breakers(const std::vector<Breaker>& seen, const std::vector<Breaker>& breakers) {
    const std::lock_guard lock(mutex_);
    endpoints_.set_breakers(seen, breakers, steady_now(), wall_now());
  }
  /// The time until an endpoint takes a message; nullopt if one does now.
  std::optional<std::chrono::seconds> time_to_admission() const {
    const std::lock_guard lock(mutex_);
    return admission();
  }

  /// How many messages a batch should have, at most `most`: those that the endpoint takes in a few seconds.
  int room(int most) const {
    const std::lock_guard lock(mutex_);
    return endpoints_.likely().pace().room(most);
  }
  /// When a further message could leave; a time in the past means now.
  TimePoint next_turn() const {
    const std::lock_guard lock(mutex_);
    const auto& pace = endpoints_.likely().pace();
    return pace.next() + pace.gap() * static_cast<int>(waiting_.size());
  }
  /// The time between two messages that the endpoint in use takes; 0 without a limit.
  std::chrono::nanoseconds gap() const {
    const std::lock_guard lock(mutex_);
    return endpoints_.likely().pace().gap();
  }
  /// The rate that the endpoint in use was found to take, in messages per second; nullopt without a limit.
  std::optional<double> rate() const {
    const std::lock_guard lock(mutex_);
    return endpoints_.likely().pace().limit();
  }

 private:
  struct Pending {
    Message message;
    SpooledText body;
    TimePoint until;  ///< how long it may wait for its turn
    Likeness likeness{};
    Refusals refusals{};
    std::size_t first = 0;  ///< the first endpoint that may get it: those before are unavailable
    int tries = 0;
    bool may_be_taken = false;               ///< one of them was not answered
    TimePoint first_left{};                  ///< with tries > 0
    Departure departure{};                   ///< the last time
    std::optional<Answer> last{};            ///< of the endpoints before `first`
    std::string loaded{};                    ///< the body, if it was read from a file
    std::shared_ptr<Clearance> clearance{};  ///< of the attempt that is made, or comes next

    /// Several mails that may have been taken are the same attempt still: without one of them the receiver
    /// would not recognise the others, and take them twice.
    std::shared_ptr<Clearance> next_clearance() const {
      return may_be_taken && !message.mails.empty() ? message.clearance : message.clearance_of_attempt();
    }
  };
  // The functions below need the mutex.
  void keep_busy();
  Milliseconds patience();
  void pump();
  /// When fewer messages are unanswered, the thread has something to do.
  std::size_t call_level(TimePoint now) const;
  bool submit_next(TimePoint now);
  bool is_held(std::int64_t id);
  static bool is_refused(const Pending& pending);
  bool is_resend_due(TimePoint now) const { return !resends_.empty() && resends_.begin()->first <= now; }
  void tell_connections(std::size_t endpoint, TimePoint now);
  void send(std::int64_t id, std::size_t endpoint, TimePoint now);
  Endpoints::Choice choose(const Pending& pending) const;
  /// No endpoint takes the message for `wait`.
  void turn_away(std::int64_t id, TimePoint now, Milliseconds wait);
  Milliseconds time_away(std::int64_t id, const Endpoints::Choice& choice);
  /// Gives the message back if the endpoint takes few of its domain.
  bool waits_for_domain(std::int64_t id, std::size_t endpoint, TimePoint now);
  void give_back_overdue(TimePoint now);
  void end_search();
  void give_up(std::int64_t id, const char* why);
  void take_answers();
  void record(Answer answer);
  bool is_tried_elsewhere(Pending& pending, const Answer& answer);
  bool waits_again(Pending& pending, Answer& answer, TimePoint now);
  bool is_sent_again(Pending& pending, const Answer& answer, TimePoint now);
  void enqueue(std::int64_t id);
  void conclude(std::int64_t id, Answer answer);
  std::optional<std::chrono::seconds> admission() const;
  double chance();

  std::unique_ptr<Carrier> carrier_;
  Options options_;
  mutable std::mutex mutex_;  ///< guards all below and the carrier
  Endpoints endpoints_;
  std::vector<int> connections_;                    ///< of each, as the carrier knows; 0: tell it
  std::map<std::int64_t, Pending> pending_;         ///< by id: those without a final answer
  std::deque<std::int64_t> waiting_;                ///< to be submitted
  std::multimap<TimePoint, std::int64_t> resends_;  ///< to be submitted again, and when
  RefusedRecipients refused_;
  DispatchResults results_;
  std::mt19937_64 random_;
  EventFd news_;  ///< for the thread: the first message is there, or the end
  bool was_searching_ = false;
  bool is_cancelling_ = false;
  bool has_ended_ = false;
  std::thread keeper_;
};

}  // namespace mailroom::delivery
