#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "smtp/relay.hpp"
#include "smtp/relay_route.hpp"

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
  TimePoint at{};  ///< when it got its outcome
};

/// Delivers mails over several connections, a thread each, so that a slow recipient delays no other mail.
/// Every submitted mail gets one outcome. All functions are for one thread.
class Courier {
 public:
  /// Throws Error(configuration) as check_relay(). Starts the threads; connects when the first mail comes.
  explicit Courier(const CourierOptions& options);
  /// cancel(), then says goodbye to the relays.
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  /// Takes a mail; returns at once. `mail.message` must live until its outcome has been taken. Mails belong
  /// to the batch whose number they are given.
  void submit(std::int64_t id, Mail mail, std::int64_t batch = 0);
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
  void set_breakers(const std::vector<Breaker>& seen, const std::vector<Breaker>& breakers) {
    route_.set_breakers(seen, breakers);
  }
  /// The time until a relay takes a mail; nullopt if one does now.
  std::optional<std::chrono::seconds> time_to_admission() const { return route_.time_to_admission(); }

 private:
  struct Submitted {
    std::int64_t id;
    Mail mail;
    std::int64_t batch;
  };
  using Relays = std::vector<std::unique_ptr<Relay>>;

  void work(Relays& relays);
  Delivery deliver(Relays& relays, const Mail& mail);
  /// Keeps the outcome of a mail, with mutex_ held. Tells those who wait when it was the last of its batch:
  /// once for many mails, since to wake a thread costs as much as a tenth of a delivery.
  void keep(const Submitted& mail, Delivery delivery);
  template <typename Visit>
  void each_relay(Visit visit);

  RelayRoute route_;
  std::vector<Relays> relays_;  ///< for each thread one of each
  int ready_;                   ///< an eventfd
  mutable std::mutex mutex_;
  std::condition_variable submitted_;
  std::condition_variable finished_;
  std::deque<Submitted> waiting_;
  std::vector<DeliveredMail> delivered_;
  std::map<std::int64_t, std::size_t> unfinished_;  ///< how many mails of each batch have no outcome
  std::size_t in_flight_ = 0;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace mailroom
