// Which of several queues is next, by priority, waiting time and budget.
//
// It does not decide when a queue is due nor how much is claimed (batcher), and does not claim (claimer).
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "consumer/batcher.hpp"

namespace mailroom::consumer {

/// Decides which of its queues a consumer polls next, without clock or database: times and claim results come
/// in, decisions go out. Keeps since when each queue has wanted a turn.
///
/// Of the queues that want a poll, the one with the highest priority has its turn; of equals, the one that
/// has wanted it longest. A queue that has wanted it for `max_wait` has its turn whatever its priority. A
/// queue that may want one now, if its budgets allow it a token already, keeps those of lower priority
/// waiting until that is known: a budget that they share would give them the token of the first.
class QueueTurns {
 public:
  struct Options {
    Batcher::Options batcher;  ///< of each queue, unless `batcher_of` says otherwise
    std::function<Batcher::Options(const queue::QueueRecord&)> batcher_of{};
    Milliseconds max_wait = std::chrono::seconds(30);
  };

  struct Turn {
    Batcher::Decision decision;  ///< without a poll: when to decide again
    std::string queue{};         ///< to be polled
    int line_limit = 0;          ///< tokens per line
  };

  QueueTurns(const std::vector<std::string>& queues, const Options& options);

  /// Takes effect at once. Queues that stay keep their state.
  void configure(const std::vector<std::string>& queues, const Options& options);
  /// What the database says of the queues; those that are missing have the defaults.
  void define(const std::vector<queue::QueueRecord>& definitions);
  /// A new session: all waiting tokens are emitted at once.
  void connected();
  void notified();
  /// A poll of every queue is wanted, also of those that waited for their budget or were paused.
  void released();
  /// Whose turn it is. A queue that wants one has wanted it since the first call that found so. `polling` as
  /// in Batcher::decide().
  Turn next(TimePoint now, bool polling = false);
  /// Records the reply to the claim that `turn` asked for, and when it started and finished. `complete`: it
  /// would have taken over an abandoned batch.
  void claimed(const Turn& turn, const claim::ClaimReply& reply, TimePoint started, TimePoint finished,
               bool complete = true);

  /// Every due token of one of the queues up to this id was seen, and maybe later ones: the arrivals of all
  /// queues, as the one that is furthest sees them. 0: the last claim saw nothing.
  std::int64_t last() const { return last_; }
  /// True if tokens of a queue wait for their batch to fill.
  bool waiting() const {
    return std::any_of(queues_.begin(), queues_.end(), [](const auto& queue) { return queue.waiting; });
  }
  /// True if every queue has had a claim that found nothing to do, or is paused.
  bool drained() const {
    return std::all_of(queues_.begin(), queues_.end(), [](const auto& queue) { return queue.drained; });
  }
  /// True if a queue is paused.
  bool is_paused(const std::string& queue) const;

 private:
  /// Its budgets allow a queue no token, or it is paused. When that ends is known as precisely as the claim
  /// was short.
  struct Hold {
    TimePoint from;   ///< it may have ended
    TimePoint until;  ///< it has ended
  };
  struct Queue {
    queue::QueueRecord definition;
    Batcher batcher;
    int line_limit = 0;
    std::optional<TimePoint> wanted_since{};
    std::optional<Hold> hold{};
    std::int64_t last = 0;
    bool waiting = false;
    bool drained = false;
    bool paused = false;
  };

  void configure(Queue& queue) const;
  /// Until when `queue` waits for the hold of another to end; nullopt: it need not.
  std::optional<TimePoint> waits_for_hold(const Queue& queue, TimePoint now) const;
  /// True if `a` has its turn before `b`; both want one.
  bool is_before(const Queue& a, const Queue& b, TimePoint now) const;

  Options options_;
  std::vector<Queue> queues_;
  std::int64_t last_ = 0;
};

}  // namespace mailroom::consumer
