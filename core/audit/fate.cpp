#include "audit/fate.hpp"

#include <algorithm>

#include "base/moment.hpp"

namespace mailroom {
namespace {

bool is_cut(const TokenFacts& facts, const BatchRecord& batch) {
  return std::any_of(facts.operations.begin(), facts.operations.end(), [&](const auto& operation) {
    return std::find(operation.cut_batches.begin(), operation.cut_batches.end(), batch.id) !=
           operation.cut_batches.end();
  });
}

/// A batch that held the id may have held another token.
Outcome judge_batch_of(const TokenFacts& facts, const BatchRecord& batch) {
  const auto outcome = judge_batch(batch, facts.id, is_cut(facts, batch));
  return outcome == Outcome::handed_on && contains(batch.unsure, facts.id) ? Outcome::maybe_handed_on
                                                                           : outcome;
}

/// Of handed_on and maybe_handed_on the certain one tells more; of the others the newest batch does.
void count_batches(const TokenFacts& facts, TokenFate& fate) {
  std::optional<BatchRecord> handed_on;
  for (const auto& batch : facts.batches) {
    fate.outcome = judge_batch_of(facts, batch);
    fate.batch = batch;
    if (fate.outcome == Outcome::handed_on) ++fate.times;
    if (fate.outcome == Outcome::maybe_handed_on) ++fate.maybe;
    if (fate.outcome != Outcome::handed_on && fate.outcome != Outcome::maybe_handed_on) continue;
    if (!handed_on || *handed_on->emitted_at <= *batch.emitted_at) handed_on = batch;
  }
  if (!handed_on) return;
  if (fate.outcome == Outcome::in_open_batch) fate.next = Outcome::in_open_batch;
  fate.outcome = fate.times > 0 ? Outcome::handed_on : Outcome::maybe_handed_on;
  fate.batch = handed_on;
}

std::optional<Outcome> waits_in(const TokenFacts& facts, const QueueStand& stand) {
  if (!facts.exists) return std::nullopt;
  if (facts.id <= stand.cursor && !stand.in_hole) return std::nullopt;
  if (facts.state != "due") return Outcome::waiting_not_due;
  return stand.in_hole ? Outcome::waiting_again : Outcome::waiting;
}

/// A token that was handed on waits again where a rewind or a replay put it; a queue that has never known it
/// is another matter.
void look_for_replay(const TokenFacts& facts, TokenFate& fate) {
  for (const auto& stand : facts.queues) {
    const bool knows_it = std::any_of(facts.batches.begin(), facts.batches.end(),
                                      [&](const auto& batch) { return batch.queue == stand.queue; });
    const auto waits = waits_in(facts, stand);
    if (!knows_it || !waits || *waits == Outcome::waiting_not_due) continue;
    fate.next = waits;
    fate.queue = stand.queue;
  }
}

const Operation* forward_move_over(const TokenFacts& facts, const std::string& queue) {
  const auto found =
      std::find_if(facts.operations.begin(), facts.operations.end(), [&](const auto& operation) {
        const bool is_later = !facts.exists || operation.at >= to_microseconds(facts.created_at) - 1'000'000;
        return operation.is_forward && operation.queue == queue && contains(operation.tokens, facts.id) &&
               is_later;
      });
  return found == facts.operations.end() ? nullptr : &*found;
}

using ReasonCounts = std::vector<std::pair<std::string, int>>;

/// What a batch passed over when it was claimed, and what it left out when it was written, are in the same
/// counts, so only one reason alone is certain.
void find_reason(const TokenFacts& facts, const ReasonCounts& counts, TokenFate& fate) {
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : counts) {
    if (count > 0) reasons.push_back(reason);
  }
  fate.reason_certain = reasons.size() == 1;
  const bool fits = std::find(reasons.begin(), reasons.end(), facts.state) != reasons.end();
  if (fate.reason_certain) fate.reason = reasons.front();
  if (reasons.size() > 1 && fits) fate.reason = facts.state;
}

void explain_passing(const TokenFacts& facts, const Passing& passing, TokenFate& fate) {
  fate.outcome = Outcome::passed_over;
  fate.passing = passing;
  find_reason(facts, {{"expired", passing.expired}, {"consumed", passing.consumed}}, fate);
}

void explain_leaving_out(const TokenFacts& facts, TokenFate& fate) {
  const auto& batch = *fate.batch;
  find_reason(facts,
              {{"expired", batch.skipped_expired},
               {"consumed", batch.skipped_consumed},
               {"wrong status", batch.skipped_status},
               {"invalid", batch.skipped_invalid}},
              fate);
}

void explain_absence(const TokenFacts& facts, const QueueStand& stand, TokenFate& fate) {
  fate.queue = stand.queue;
  if (const auto* operation = forward_move_over(facts, stand.queue)) {
    fate.outcome = Outcome::passed_by;
    fate.operation = *operation;
    return;
  }
  if (stand.missed) {
    fate.outcome = Outcome::missed;
    return;
  }
  if (!stand.records_complete) {
    fate.outcome = Outcome::not_recorded;
    return;
  }
  if (!stand.passing || stand.passing->expired + stand.passing->consumed == 0) return;
  explain_passing(facts, *stand.passing, fate);
}

/// A token that no batch holds: one queue where it is still to come outweighs others that have passed it.
void look_for_reason(const TokenFacts& facts, TokenFate& fate) {
  if (facts.queues.empty()) return;
  const auto waiting = std::find_if(facts.queues.begin(), facts.queues.end(),
                                    [&](const auto& stand) { return waits_in(facts, stand).has_value(); });
  if (waiting == facts.queues.end()) return explain_absence(facts, facts.queues.front(), fate);
  fate.outcome = *waits_in(facts, *waiting);
  fate.queue = waiting->queue;
}

}  // namespace

Outcome judge_batch(const BatchRecord& batch, std::int64_t token, bool cut) {
  if (batch.set_aside_at && !batch.emitted_at) return Outcome::set_aside;
  if (!batch.emitted_at) return Outcome::in_open_batch;
  // Of several hand-outs only the last is recorded, and an earlier one may have been written.
  if (contains(batch.left_out, token))
    return batch.attempts > 1 ? Outcome::maybe_handed_on : Outcome::left_out;
  const bool all_recorded = batch.emitted + count_ids(batch.left_out) >= batch.size;
  return all_recorded && !cut ? Outcome::handed_on : Outcome::maybe_handed_on;
}

TokenFate judge_fate(const TokenFacts& facts) {
  TokenFate fate;
  count_batches(facts, fate);
  if (fate.outcome == Outcome::left_out) explain_leaving_out(facts, fate);
  if (facts.batches.empty()) {
    look_for_reason(facts, fate);
  } else if (!fate.next && fate.outcome != Outcome::in_open_batch) {
    look_for_replay(facts, fate);
  }
  return fate;
}

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::handed_on:
      return "handed on";
    case Outcome::maybe_handed_on:
      return "maybe handed on";
    case Outcome::in_open_batch:
      return "in open batch";
    case Outcome::set_aside:
      return "set aside";
    case Outcome::left_out:
      return "left out";
    case Outcome::waiting:
      return "waiting";
    case Outcome::waiting_not_due:
      return "waiting, not due";
    case Outcome::waiting_again:
      return "waiting again";
    case Outcome::passed_over:
      return "passed over";
    case Outcome::passed_by:
      return "passed by";
    case Outcome::missed:
      return "missed";
    case Outcome::not_recorded:
      return "not recorded";
    case Outcome::unexplained:
      break;
  }
  return "unexplained";
}

}  // namespace mailroom
