// Claimed batches on their way through the sink.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consumer/batch_signer.hpp"
#include "consumer/emission_log.hpp"
#include "consumer/queue_turns.hpp"
#include "consumer/receipts.hpp"
#include "consumer/sink.hpp"
#include "consumer/waker.hpp"

namespace mailroom::consumer {

/// A claim that the loop has made: what was asked for, what came back, and what was known before.
struct MadeClaim {
  QueueTurns::Turn turn;
  claim::ClaimRequest request;
  TimePoint started;
  int session = 0;             ///< the number of the session that made it
  bool was_last_poll = false;  ///< the last one of draining, if it succeeds
  bool was_paused = false;     ///< its queue, by the claim before
  claim::ClaimReply reply{};
  std::chrono::nanoseconds took{};
  std::int64_t passed = 0;  ///< the queue's cursor before: all tokens up to this id had been claimed once

  /// Why its batch was taken. `last_token`: the highest id in the batch; 0 if it has no token.
  BatchTrigger trigger(std::int64_t last_token) const {
    const bool was_passed = last_token > 0 && last_token <= passed;
    if (was_passed || reply.lease->attempt > 1) return BatchTrigger::replay;
    const auto& decision = turn.decision;
    if (!decision.partial || decision.full || reply.size >= std::min(turn.line_limit, request.limit))
      return BatchTrigger::full;
    return decision.draining ? BatchTrigger::drain : BatchTrigger::timeout;
  }
};

/// Signs claimed batches, keeps them open at the sink, and makes a receipt of each that the sink has
/// finished. The only part of the loop that knows the sink.
///
/// A batch is acknowledged only after the sink has finished it, so a crash repeats at most the batches that
/// are open at the sink or have a receipt. Together these are at most as many as may be open.
class Pipeline final : private claim::LeaseRecord {
 public:
  /// What the sink takes now.
  struct Capacity {
    std::size_t batches = 1;  ///< that may be open at the same time
    int tokens = 0;           ///< with those in open batches
    TimePoint from{};         ///< it is unavailable, and nothing is claimed before
  };

  /// The references must outlive this.
  Pipeline(const crypto::Key& key, std::unique_ptr<Sink> sink, SessionKeeper& sessions, Receipts& receipts,
           Waker& waker, process::Environment& environment, Log& log, ConsumerObserver& observer);

  /// Takes the leases of what is open, and of what is not acknowledged, into a new session.
  void keep_leases();
  /// Takes effect at once, after what is open has been finished.
  void configure(const crypto::Key& key, std::unique_ptr<Sink> sink);

  Capacity capacity() const;
  /// False if finishing a batch would have to wait for the receiver.
  bool is_ready() const { return sink_->is_ready(); }
  /// Why nothing is claimed, for people.
  std::string unavailability() const { return sink_->unavailability(); }
  /// Shares the states of sinks with other consumers; `heard`: they may have changed. False if the session
  /// has ended meanwhile.
  bool consult(bool heard);
  /// Tells the others, too, that this consumer stops.
  void leave();
  /// Reports what became of tokens whose batches did not wait for it, once these are acknowledged.
  void report_late();
  /// Waits for what is left of that. True if there is something to report, once the receipts are
  /// acknowledged.
  bool finish_late();
  void forget_late() { late_.clear(); }

  /// Opens the batch of `claim`, whose `rows` it reads, at the sink. It stays open there while the next one
  /// is claimed if the sink lets it, and if `claims_on`: another claim follows at once.
  void deliver(const MadeClaim& claim, const BatchSigner::Rows& rows, bool claims_on);
  bool has_open() const { return !open_.empty(); }
  /// The batch of `queue` that is open.
  std::optional<std::int64_t> open_batch(const std::string& queue) const;
  void finish_oldest();
  void finish_all();

  /// Batches with an emitted token.
  std::int64_t written() const { return written_; }
  /// True if the next batch may be claimed while the tokens of one go to the sink. Then what was open before
  /// that is finished, and has a receipt. While the reader of lines is slow, claims and reads are not what
  /// lasts.
  bool clears_for_claim();
  /// A claim has skipped tokens, of which that many had expired.
  void count_skipped(int tokens, int expired);
  EmissionLog& emission_log() { return emission_log_; }

 private:
  /// A batch at the sink.
  struct OpenBatch {
    SignedBatch batch;
    int size = 0;
    BatchTrigger trigger = BatchTrigger::full;
  };

  std::optional<std::vector<std::int64_t>> begin(const std::vector<claim::Lease>& leases,
                                                 const std::vector<std::string>& sinks) override;
  std::optional<std::vector<claim::WithheldToken>> withheld(const std::vector<std::int64_t>& tokens) override;
  void keep() override;
  /// How many batches may stay open while the next is claimed.
  std::size_t may_stay_open(const MadeClaim& claim, bool claims_on) const;
  void note_finished(const OpenBatch& open, const claim::Receipt& receipt);

  BatchSigner signer_;
  std::unique_ptr<Sink> sink_;
  SessionKeeper& sessions_;
  Receipts& receipts_;
  Waker& waker_;
  process::Environment& environment_;
  Log& log_;
  ConsumerObserver& observer_;
  std::deque<OpenBatch> open_;        ///< the oldest first
  int kept_in_ = 0;                   ///< the number of the session that has the leases
  std::vector<claim::Receipt> late_;  ///< what became of tokens whose batches did not wait for it
  std::int64_t written_ = 0;
  bool is_reader_fast_ = false;
  EmissionLog emission_log_;
};

}  // namespace mailroom::consumer
