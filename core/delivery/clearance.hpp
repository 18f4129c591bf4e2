// Keeps a message from the receiver until it is on record that its batch may be there.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "base/threads.hpp"

namespace mailroom::delivery {

/// Whether the messages of one lease may leave by one lane. What may have reached the receiver is known
/// from the database alone: a consumer that dies leaves nothing else. So the first message that could leave,
/// once there is a session with the receiver, asks, and the sink's thread has the lease recorded and answers.
/// The following messages pass.
class Clearance {
 public:
  /// `bell` rings when somebody asks. `is_given`: it is on record already.
  Clearance(std::shared_ptr<const EventFd> bell, bool is_given)
      : bell_(std::move(bell)), state_(is_given ? State::given : State::unasked) {}

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

 private:
  enum class State { unasked, asked, given, refused };

  void ask_locked() {
    if (state_ != State::unasked) return;
    state_ = State::asked;
    bell_->signal();
  }
  bool answer(State state) {
    const std::lock_guard lock(mutex_);
    if (state_ == State::given) return false;
    state_ = state;
    answered_.notify_all();
    return true;
  }

  std::shared_ptr<const EventFd> bell_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::atomic<State> state_;
};

}  // namespace mailroom::delivery
