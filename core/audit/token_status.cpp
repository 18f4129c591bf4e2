// A batch that emitted the token decides. Without a batch, positions and skips in the queues explain it.

#include "audit/token_status.hpp"

#include <algorithm>
#include <array>

namespace mailroom {
namespace {

bool is_cut(const TokenFacts& facts, const BatchRecord& batch) {
  return std::any_of(facts.operations.begin(), facts.operations.end(), [&](const auto& operation) {
    return std::find(operation.cut_batches.begin(), operation.cut_batches.end(), batch.id) !=
           operation.cut_batches.end();
  });
}

/// The id in the batch may have belonged to another token.
Outcome judge_batch_of(const TokenFacts& facts, const BatchRecord& batch) {
  const auto outcome = judge_batch(batch, facts.id, is_cut(facts, batch));
  return outcome == Outcome::emitted && contains(batch.unsure, facts.id) ? Outcome::maybe_emitted : outcome;
}

/// A batch that emitted the token, or may have, decides the outcome; otherwise the newest batch does.
void count_batches(const TokenFacts& facts, TokenStatus& status) {
  std::optional<BatchRecord> emitted;
  for (const auto& batch : facts.batches) {
    status.outcome = judge_batch_of(facts, batch);
    status.batch = batch;
    if (status.outcome == Outcome::emitted) ++status.times;
    if (status.outcome == Outcome::maybe_emitted) ++status.maybe;
    if (status.outcome != Outcome::emitted && status.outcome != Outcome::maybe_emitted) continue;
    if (!emitted || *emitted->emitted_at <= *batch.emitted_at) emitted = batch;
  }
  if (!emitted) return;
  if (status.outcome == Outcome::in_open_batch) status.next = Outcome::in_open_batch;
  status.outcome = status.times > 0 ? Outcome::emitted : Outcome::maybe_emitted;
  status.batch = emitted;
}

/// Finds the queue in which an emitted token waits again after a rewind or a replay. Ignores queues whose
/// batches never held it.
void find_replay(const TokenFacts& facts, TokenStatus& status) {
  for (const auto& position : facts.queues) {
    const bool knows_it = std::any_of(facts.batches.begin(), facts.batches.end(),
                                      [&](const auto& batch) { return batch.queue == position.queue; });
    const auto waits = waits_in(facts, position);
    if (!knows_it || !waits || *waits == Outcome::waiting_not_due) continue;
    status.next = waits;
    status.queue = position.queue;
  }
}

const Operation* forward_move_over(const TokenFacts& facts, const std::string& queue) {
  const auto found =
      std::find_if(facts.operations.begin(), facts.operations.end(), [&](const auto& operation) {
        const bool is_later = !facts.exists || operation.at >= facts.created_at - std::chrono::seconds(1);
        return operation.is_forward && operation.queue == queue && contains(operation.tokens, facts.id) &&
               is_later;
      });
  return found == facts.operations.end() ? nullptr : &*found;
}

/// The same counts include tokens skipped by the claim and when the line was written, so a reason is certain
/// only if there is no other.
void find_reason(const TokenFacts& facts, const SkipCounts& counts, TokenStatus& status) {
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : counts.by_reason()) {
    if (count > 0) reasons.emplace_back(reason);
  }
  status.reason_certain = reasons.size() == 1;
  const bool fits = std::find(reasons.begin(), reasons.end(), facts.state) != reasons.end();
  if (status.reason_certain) status.reason = reasons.front();
  if (reasons.size() > 1 && fits) status.reason = facts.state;
}

void explain_absence(const TokenFacts& facts, const TokenPosition& position, TokenStatus& status) {
  status.queue = position.queue;
  if (const auto* operation = forward_move_over(facts, position.queue)) {
    status.outcome = Outcome::moved_past;
    status.operation = *operation;
    return;
  }
  if (position.missed) {
    status.outcome = Outcome::missed;
    return;
  }
  if (!position.records_complete) {
    status.outcome = Outcome::not_recorded;
    return;
  }
  if (!position.skip) return;
  // A claim does not check accounts; it counts those only when the batch is written.
  const SkipCounts by_claim{.expired = position.skip->skipped.expired,
                            .consumed = position.skip->skipped.consumed};
  if (by_claim.total() == 0) return;
  status.outcome = Outcome::skipped;
  status.skip = position.skip;
  find_reason(facts, by_claim, status);
}

/// Explains a token that no batch holds. A queue in which it still waits takes precedence over other queues.
void find_absence_reason(const TokenFacts& facts, TokenStatus& status) {
  if (facts.queues.empty() && facts.exists) status.outcome = Outcome::not_taken;
  if (facts.queues.empty()) return;
  const auto waiting = std::find_if(facts.queues.begin(), facts.queues.end(), [&](const auto& position) {
    return waits_in(facts, position).has_value();
  });
  if (waiting == facts.queues.end()) return explain_absence(facts, facts.queues.front(), status);
  status.outcome = *waits_in(facts, *waiting);
  status.queue = waiting->queue;
}

}  // namespace

std::optional<Outcome> waits_in(const TokenFacts& facts, const TokenPosition& position) {
  if (!facts.exists) return std::nullopt;
  if (facts.id <= position.cursor && !position.in_gap) return std::nullopt;
  if (facts.state != "due") return Outcome::waiting_not_due;
  return position.in_gap ? Outcome::waiting_again : Outcome::waiting;
}

Outcome judge_batch(const BatchRecord& batch, std::int64_t token, bool cut) {
  if (batch.dead_at && !batch.emitted_at) return Outcome::dead;
  if (!batch.emitted_at) return Outcome::in_open_batch;
  // Only the last of several leases records its skipped tokens; an earlier one may have emitted this token.
  if (contains(batch.skipped_ids, token))
    return batch.attempts > 1 ? Outcome::maybe_emitted : Outcome::skipped_in_batch;
  const bool all_recorded = batch.emitted + count_ids(batch.skipped_ids) >= batch.size;
  return all_recorded && !cut ? Outcome::emitted : Outcome::maybe_emitted;
}

TokenFacts in_queue(TokenFacts facts, const std::string& queue) {
  const auto is_of_another = [&](const auto& record) { return record.queue != queue; };
  std::erase_if(facts.batches, is_of_another);
  std::erase_if(facts.queues, is_of_another);
  std::erase_if(facts.deliveries, is_of_another);
  return facts;
}

TokenStatus judge_token(const TokenFacts& facts) {
  TokenStatus status;
  count_batches(facts, status);
  if (status.outcome == Outcome::skipped_in_batch) find_reason(facts, status.batch->skipped, status);
  if (facts.batches.empty()) {
    find_absence_reason(facts, status);
  } else if (!status.next && status.outcome != Outcome::in_open_batch) {
    find_replay(facts, status);
  }
  return status;
}

const char* outcome_name(Outcome outcome) {
  static constexpr std::array names{"emitted", "maybe emitted",    "in open batch", "dead",     "skipped",
                                    "waiting", "waiting, not due", "waiting again", "skipped",  "moved past",
                                    "missed",  "not recorded",     "unexplained",   "not taken"};
  return names.at(static_cast<std::size_t>(outcome));
}

}  // namespace mailroom
