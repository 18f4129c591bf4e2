// Keeps a message from the receiver until it is on record that its batch may be there, and, for mails that
// people can unsubscribe from, until it is known that they have not.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/threads.hpp"

namespace mailroom::delivery {

class Permits;

/// Whether the messages of one lease may leave by one lane. What may have reached the receiver is known
/// from the database alone: a consumer that dies leaves nothing else. So the first message that could leave,
/// once there is a session with the receiver, asks, and the sink's thread has the lease recorded and answers.
/// The following messages pass. Or whether one attempt may begin: see Permits.
class Clearance : public std::enable_shared_from_this<Clearance> {
 public:
  /// `bell` rings when somebody asks. `is_given`: it is on record already.
  Clearance(std::shared_ptr<const EventFd> bell, bool is_given)
      : bell_(std::move(bell)), state_(is_given ? State::given : State::unasked) {}
  /// Of one attempt at the mails of `tokens`, whose lease has the clearance `of_lease`, which may be null.
  Clearance(std::shared_ptr<Permits> permits, std::shared_ptr<Clearance> of_lease,
            std::vector<std::int64_t> tokens)
      : permits_(std::move(permits)),
        of_lease_(std::move(of_lease)),
        tokens_(std::move(tokens)),
        state_(State::unasked) {}

  /// Asks, and waits for the answer. For a thread that the sink's does not wait for.
  bool wait() {
    if (is_given()) return true;
    std::unique_lock lock(mutex_);
    ask_locked();
    answered_.wait(lock, [this] { return state_ != State::asked; });
    return state_ == State::given;
  }
  /// Asks. True if it is given; false does not say that it will not be.
  bool ask() {
    if (is_given()) return true;
    const std::lock_guard lock(mutex_);
    ask_locked();
    return state_ == State::given;
  }
  bool is_given() const { return state_ == State::given; }
  bool is_refused() const { return state_ == State::refused; }
  bool is_asked() const { return state_ == State::asked; }

  void give() { answer(State::given); }
  /// The messages that have not left must not, unless it was given. Returns whether it was not.
  bool refuse() { return answer(State::refused); }

  // Of an attempt.
  const std::shared_ptr<Clearance>& of_lease() const { return of_lease_; }
  const std::vector<std::int64_t>& tokens() const { return tokens_; }

 private:
  enum class State { unasked, asked, given, refused };

  void ask_locked();
  bool answer(State state) {
    const std::lock_guard lock(mutex_);
    if (state_ == State::given) return false;
    state_ = state;
    answered_.notify_all();
    return true;
  }

  std::shared_ptr<const EventFd> bell_{};
  std::shared_ptr<Permits> permits_{};
  std::shared_ptr<Clearance> of_lease_{};
  std::vector<std::int64_t> tokens_{};
  std::mutex mutex_;
  std::condition_variable answered_;
  std::atomic<State> state_;
};

/// The clearances of attempts at mails with a topic, by one lane. Each attempt has one of its own: the last
/// thing before the receiver could take the mail is to ask whether its reader has unsubscribed. What has
/// asked is answered together, by the sink's thread. For several threads.
class Permits : public std::enable_shared_from_this<Permits> {
 public:
  /// `bell` rings when somebody asks.
  explicit Permits(std::shared_ptr<const EventFd> bell) : bell_(std::move(bell)) {}

  /// For an attempt that is about to begin.
  std::shared_ptr<Clearance> permit(std::shared_ptr<Clearance> of_lease, std::vector<std::int64_t> tokens) {
    return std::make_shared<Clearance>(shared_from_this(), std::move(of_lease), std::move(tokens));
  }
  /// Those that wait for an answer.
  std::vector<std::shared_ptr<Clearance>> asked();
  /// While it is on, whoever asks or has asked is refused.
  void refuse_all(bool on);

 private:
  friend class Clearance;
  /// False if it is refused at once.
  bool add(std::shared_ptr<Clearance> clearance);

  std::shared_ptr<const EventFd> bell_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Clearance>> asked_;
  bool is_refusing_ = false;
};

}  // namespace mailroom::delivery
