// Delivers mails to relays in parallel, for the sink of mailroom send.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "carriers/smtp/at_once.hpp"
#include "carriers/smtp/relay.hpp"
#include "carriers/smtp/relay_route.hpp"
#include "delivery/pace.hpp"

namespace mailroom {

struct CourierOptions {
  std::vector<RelayUrl> relays;  ///< at least one; a mail goes to the first whose breaker is closed
  RelayOptions relay;
  int connections = 4;     ///< how many mails are delivered at the same time
  std::uint64_t seed = 0;  ///< of the jitter of the breakers
};

struct DeliveredMail {
  std::int64_t id = 0;
  Delivery delivery;
  TimePoint at{};        ///< when it got its outcome
  bool is_final = true;  ///< false: a limit of the relay refused the mail, which is tried again
};

/// Delivers mails over several connections, a thread each, so that a slow recipient delays no other mail.
/// Every submitted mail gets one outcome. Learns at which rate, and over how many connections, a relay takes
/// mails, and tries a mail again that was too much, for as long as Pace::longest_wait. All functions are for
/// one thread.
class Courier {
 public:
  /// Throws Error(configuration) as check_relay(). Starts the threads; connects when the first mail comes.
  explicit Courier(const CourierOptions& options);
  /// cancel(), then says goodbye to the relays.
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  /// Takes a mail; returns at once. `mail.message` must live until its outcome has been taken. Mails belong
  /// to the batch whose number they are given. One that waits for its turn is given up at `expires_at`.
  void submit(std::int64_t id, Mail mail, std::int64_t batch = 0, TimePoint expires_at = TimePoint::max());
  /// Becomes readable when every mail of a batch has its outcome; take() ends that.
  int fd() const { return ready_; }
  /// The outcomes since the last call, in the order in which they came.
  std::vector<DeliveredMail> take();
  /// The number of mails without an outcome.
  std::size_t unfinished() const;
  /// Waits until every mail has its outcome; false if it is `until` before.
  bool wait(TimePoint until);
  /// Gives up every mail without an outcome: unknown if its end has been sent, otherwise deferred without
  /// counting. Returns when all have their outcome, which takes a moment, however long a relay hangs.
  void cancel();

  /// How the relays are, in their order; to share with other processes.
  std::vector<Breaker> breakers() const { return route_.breakers(); }
  /// What others say of a relay that answers mails of this courier is not taken over.
  void set_breakers(const std::vector<Breaker>& seen, std::vector<Breaker> breakers);
  /// The time until a relay takes a mail; nullopt if one does now.
  std::optional<std::chrono::seconds> time_to_admission() const;

  /// How many mails a batch should have, at most `most`: those that the relay takes in a few seconds.
  int room(int most) const;
  /// When a further mail could leave; a time in the past means now.
  TimePoint next_turn() const;
  /// The rate that the relay in use was found to take, in mails per second; nullopt without a limit.
  std::optional<double> rate() const;

 private:
  struct Submitted {
    std::int64_t id;
    Mail mail;
    std::int64_t batch;
    TimePoint until;  ///< how long it may wait for its turn
    Refusals refusals{};
  };
  /// Whether a worker's connection to a relay counts among those that the relay takes.
  struct Seat {
    bool is_taken = false;  ///< it is open, or being opened
    bool works = false;     ///< the relay has answered a mail on it
  };
  /// A thread, with a connection to each relay.
  struct Worker {
    std::vector<std::unique_ptr<Relay>> relays;
    std::vector<Seat> seats;  ///< for each relay
    TimePoint idle_since{};
  };
  /// What is known of the limits of a relay.
  struct Limits {
    Pace pace;
    AtOnce at_once;
    int seats = 0;              ///< taken by workers
    int in_flight = 0;          ///< mails
    TimePoint last_answered{};  ///< a mail
    std::int64_t refused = -1;  ///< the mail that came too fast last
  };

  void work(Worker& worker);
  /// When the worker may start the first mail that waits, or has something else to do; with mutex_ held, as
  /// all below that do not say otherwise.
  TimePoint next_start(const Worker& worker, TimePoint now);
  void start(Worker& worker, std::unique_lock<std::mutex>& lock, TimePoint now);
  /// Ends the connections of a worker that has had nothing to do for some time, or whose seat is needed.
  void rest(Worker& worker, std::unique_lock<std::mutex>& lock);
  void give_back_overdue(TimePoint now);
  /// Without the mutex.
  Delivery deliver(Worker& worker, const Submitted& submitted);
  void take_seat(Worker& worker, std::size_t relay);
  void leave_seat(Worker& worker, std::size_t relay);
  /// True if a connection of another worker is of use, so that a refused one is one too many.
  bool others_work(const Worker& worker, std::size_t relay, const Delivery& delivery) const;
  /// Learns from an attempt that began at `began`, without the mutex. True if the relay refused no more than
  /// a further connection.
  bool learn(Worker& worker, std::size_t relay, const Submitted& mail, Delivery& delivery, TimePoint began);
  static void learn_rate(Limits& limits, const Submitted& mail, const Delivery& delivery, TimePoint began,
                         TimePoint now);
  /// What is known of the recipient from mails that were given back.
  Refusals earlier_refusals(const std::string& recipient);
  void remember_refusals(const Submitted& mail);
  /// A mail was refused by words about a limit for the last time. True if they were about the mail.
  bool end_of_refusals(const Submitted& mail, const Delivery& delivery);
  /// True if the mail was put back to wait for its turn.
  bool waits_again(Submitted& mail, Delivery& delivery, TimePoint now);
  bool is_limited() const;
  void wake_workers();
  /// Keeps the outcome of a mail, with mutex_ held. Tells those who wait when it was the last of its batch:
  /// once for many mails, since to wake a thread costs as much as a tenth of a delivery.
  void keep(const Submitted& mail, Delivery delivery);
  template <typename Visit>
  void each_relay(Visit visit);

  RelayRoute route_;
  std::vector<Worker> workers_;
  std::vector<Limits> limits_;  ///< of each relay
  int ready_;                   ///< an eventfd
  mutable std::mutex mutex_;
  std::condition_variable submitted_;
  std::condition_variable finished_;
  std::deque<Submitted> waiting_;
  std::map<std::string, Refusals> refused_;  ///< by recipient, of mails that were given back
  std::vector<DeliveredMail> delivered_;
  std::map<std::int64_t, std::size_t> unfinished_;  ///< how many mails of each batch have no outcome
  std::size_t in_flight_ = 0;
  bool ended_ = false;
  bool cancelling_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mailroom
