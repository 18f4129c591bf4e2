#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "consumer/batcher.hpp"

namespace mailroom::test {

using Time = Milliseconds::rep;  ///< milliseconds since a virtual start

constexpr Time timeout = 5000;
constexpr Time poll_interval = 1000;
constexpr int limit = 3;

inline TimePoint at(Time time) {
  return TimePoint(std::chrono::hours(1)) + Milliseconds(time);
}

inline Time since_start(TimePoint time) {
  return std::chrono::duration_cast<Milliseconds>(time - at(0)).count();
}

struct BatcherEvent {
  enum Kind { notified, silent, abandoned, connected };

  Time time;
  int tokens = 0;
  Kind kind = notified;
};

/// A poll and what it took.
struct Poll {
  Time start, end;
  bool partial;
  int taken;
  bool abandoned;
  int pending;

  bool took() const { return taken > 0 || abandoned; }
};

struct Token {
  Time arrived;
  Time claimed;  ///< when the claim that took it began
  Time left;
};

/// A queue in which tokens arrive as `events` say, and a collector that only follows its batcher.
class Play {
 public:
  /// A claim takes `duration()`, and sees tokens that arrive within the first half of that time.
  Play(std::vector<BatcherEvent> events, std::function<Time()> duration)
      : events_(std::move(events)), duration_(std::move(duration)) {}

  void until(Time end) {
    while (now_ < end && fault_.empty()) {
      deliver();
      if (std::exchange(notified_, false)) batcher_.notified();
      const auto decision = batcher_.decide(at(now_));
      if (decision.poll)
        poll(decision);
      else
        wait(decision);
    }
  }

  const std::vector<Poll>& polls() const { return polls_; }
  const std::vector<Token>& left() const { return left_; }
  std::size_t waiting() const { return waiting_.size(); }
  /// The first rule that the batcher broke; empty if none.
  const std::string& fault() const { return fault_; }

 private:
  void deliver() {
    for (; next_ < events_.size() && events_[next_].time <= now_; ++next_) {
      const auto& event = events_[next_];
      waiting_.insert(waiting_.end(), static_cast<std::size_t>(event.tokens), event.time);
      if (event.kind == BatcherEvent::abandoned) ++abandoned_;
      if (event.kind == BatcherEvent::connected) {
        batcher_.connected();
        draining_ = true;
      }
      if (event.kind == BatcherEvent::notified) notified_ = news_ = true;
    }
  }

  void wait(const consumer::Batcher::Decision& decision) {
    const auto wake = since_start(decision.until);
    if (wake <= now_) return fail("it waits until a time in the past");
    const auto event = std::find_if(
        events_.begin() + static_cast<std::ptrdiff_t>(next_), events_.end(), [](const BatcherEvent& e) {
          return e.kind == BatcherEvent::notified || e.kind == BatcherEvent::connected;
        });
    now_ = event == events_.end() ? wake : std::min(wake, event->time);
  }

  void poll(const consumer::Batcher::Decision& decision) {
    if (!polls_.empty() && polls_.back().start == now_ && !polls_.back().took() && !news_ && !draining_) {
      return fail("it polls twice, and nothing was taken or arrived in between");
    }
    const auto start = now_;
    const auto duration = duration_();
    news_ = false;
    now_ = start + duration / 2;
    deliver_tokens();
    claim::ClaimReply reply;
    const int taken = claim(decision.partial, reply);
    now_ = start + duration;
    polls_.push_back(
        {start, now_, decision.partial, taken, reply.lease && reply.lease->attempt > 1, reply.pending});
    for (int i = 0; i < taken; ++i) {
      left_.push_back({waiting_.front(), start, now_});
      waiting_.pop_front();
    }
    batcher_.claimed(decision, reply, at(start), at(now_));
    judge(polls_.back(), reply);
  }

  /// A session stays the same during its claim.
  void deliver_tokens() {
    const bool reconnects = std::any_of(
        events_.begin() + static_cast<std::ptrdiff_t>(next_), events_.end(),
        [&](const BatcherEvent& e) { return e.time <= now_ && e.kind == BatcherEvent::connected; });
    if (!reconnects) deliver();
  }

  int claim(bool partial, claim::ClaimReply& reply) {
    if (abandoned_ > 0) {
      --abandoned_;
      reply.lease = claim::Lease{1, 2};
      reply.more = true;
      return 0;
    }
    const auto due = static_cast<int>(waiting_.size());
    reply.more = due >= limit;
    if (!reply.more && !partial) reply.pending = due;
    if (due == 0 || reply.pending > 0) return 0;
    reply.lease = claim::Lease{1, 1};
    return std::min(due, limit);
  }

  /// A partial batch is emitted when its timeout has ended, or while draining.
  void judge(const Poll& poll, const claim::ClaimReply& reply) {
    const bool late = clock_ && poll.start >= *clock_ + timeout;
    if (poll.partial && !draining_ && !late) fail("a partial batch was claimed before its timeout");
    if (poll.pending > 0 && !clock_) clock_ = poll.start;
    if (poll.pending == 0 && !poll.abandoned) clock_.reset();
    if (poll.partial && !reply.more) draining_ = false;
  }

  void fail(const std::string& what) { fault_ = what + ", at " + std::to_string(now_); }

  consumer::Batcher batcher_{{Milliseconds(timeout), Milliseconds(poll_interval)}};
  std::vector<BatcherEvent> events_;
  std::function<Time()> duration_;
  std::size_t next_ = 0;
  Time now_ = 0;
  bool notified_ = false;
  bool news_ = false;
  bool draining_ = false;
  int abandoned_ = 0;
  std::optional<Time> clock_;
  std::deque<Time> waiting_;
  std::vector<Poll> polls_;
  std::vector<Token> left_;
  std::string fault_;
};

}  // namespace mailroom::test
