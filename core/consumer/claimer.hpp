// Which queue the loop claims from next, when, and what it asks for.
//
// It does not order the queues (queue_turns), does not say how many tokens make a batch (batcher), and
// neither signs nor writes one (pipeline).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "consumer/pipeline.hpp"

namespace mailroom::consumer {

/// Makes the claims of a consumer: hears notifications, knows whose turn it is, and lets the session make a
/// claim while it reads the batch before. The batch of such a claim is neither signed nor written before that
/// one is written.
class Claimer {
 public:
  struct Options {
    std::vector<std::string> queues;  ///< those that it serves
    QueueTurns::Options turns;
  };
  /// The next claim, or until when there is none unless a notification or a signal comes.
  struct Next {
    std::optional<MadeClaim> claim;
    TimePoint until;
  };

  /// The references must outlive this.
  Claimer(const Options& options, SessionKeeper& sessions, Receipts& receipts, Waker& waker,
          Pipeline& pipeline, process::Environment& environment, Log& log);

  void configure(const Options& options) { turns_.configure(options.queues, options.turns); }

  /// Takes the notifications of the session. True if the states of sinks may have changed.
  bool hear(TimePoint now);
  /// Each queue wants a claim.
  void notify() { turns_.notified(); }
  /// Makes the next claim if one of the queues has its turn; or returns one that has been made.
  Next next(TimePoint now);
  /// Calls `each` for the rows of the batch of `claim`. `claims_on`: another claim follows at once, so the
  /// session may make it meanwhile. Throws what the session throws: then a later claim takes over
  /// what was claimed meanwhile.
  void read(const MadeClaim& claim, const std::function<void(const claim::TokenRow&)>& each, bool claims_on);

  /// True if a claim has been made that next() has not returned. It may have a batch.
  bool has_claim() const { return ahead_ && is_valid(*ahead_); }
  /// True if every queue has had a claim that found nothing to do, or is paused.
  bool is_drained() const { return turns_.drained() && !may_release_; }

 private:
  /// False if its session has ended: its batch is taken over, like every lease of the session.
  bool is_valid(const MadeClaim& claim) const { return claim.session == sessions_.number(); }
  MadeClaim make(const QueueTurns::Turn& turn);
  /// A claim for `turn` that starts now, and acknowledges the oldest receipt.
  MadeClaim prepare(const QueueTurns::Turn& turn);
  /// The claim to be made while the batch of `claim` is read, of which `left` tokens have not gone to the
  /// sink.
  std::optional<MadeClaim> prepare_ahead(const MadeClaim& claim, int left);
  /// Does what follows from the reply.
  Next settle(MadeClaim claim);
  void note_pauses(const MadeClaim& claim);
  /// Makes tokens of scheduled messages, as a routine poll of an idle queue does: when a session begins, and
  /// once a second while the queue is not idle, be it only for a gap or for a batch of another consumer.
  void release_due(TimePoint now);

  SessionKeeper& sessions_;
  Receipts& receipts_;
  Waker& waker_;
  Pipeline& pipeline_;
  process::Environment& environment_;
  Log& log_;
  QueueTurns turns_;
  int session_ = 0;           ///< the number of the session whose queues are known
  bool may_release_ = false;  ///< some are due, as far as is known
  bool is_busy_ = false;      ///< the last claim was not the poll of an idle queue
  TimePoint next_release_{};
  TimePoint last_published_{};
  TimePoint next_wake_{};  ///< while polling: when to notify the consumers of other queues
  std::map<std::string, std::int64_t> passed_;  ///< the highest cursor of each queue that claims have shown
  std::optional<MadeClaim> ahead_;              ///< made while the batch before was read, and not settled
};

}  // namespace mailroom::consumer
