// Makes evidence of the records of one token, and says which of them explains its fate.

#include "audit/token_status.hpp"

#include <algorithm>

namespace mailroom::audit {
namespace {

bool is_cut(const TokenFacts& facts, const queue::BatchRecord& batch) {
  return std::any_of(facts.operations.begin(), facts.operations.end(), [&](const auto& operation) {
    return std::find(operation.cut_batches.begin(), operation.cut_batches.end(), batch.id) !=
           operation.cut_batches.end();
  });
}

/// False if its counts may include tokens that a rewind took out of it, or if the id may have been another's.
bool emitted_it_for_certain(const TokenFacts& facts, const queue::BatchRecord& batch) {
  const bool all_recorded = batch.emitted + selection::count_ids(batch.skipped_ids) >= batch.size;
  return all_recorded && !is_cut(facts, batch) && !selection::contains(batch.unsure, facts.id);
}

std::int64_t in_microseconds(Moment moment) {
  return moment.time_since_epoch().count();
}

std::vector<fate::HoldingBatch> holding_batches(const TokenFacts& facts) {
  std::vector<fate::HoldingBatch> batches;
  for (const auto& batch : facts.batches) {
    const auto ended = batch.emitted_at ? batch.emitted_at : batch.dead_at;
    batches.push_back({.state = batch.emitted_at ? fate::HoldingBatch::State::emitted
                                : batch.dead_at  ? fate::HoldingBatch::State::dead
                                                 : fate::HoldingBatch::State::open,
                       .attempts = batch.attempts,
                       .leased_at = in_microseconds(
                           batch.abandoned.empty() ? batch.claimed_at : batch.abandoned.front().claimed_at),
                       .ended_at = ended ? in_microseconds(*ended) : 0,
                       .is_skipped = selection::contains(batch.skipped_ids, facts.id),
                       .is_certain = emitted_it_for_certain(facts, batch),
                       .is_by_sender = facts.exists && queue::is_by_sender(batch),
                       .queue = batch.queue});
  }
  return batches;
}

std::vector<fate::Repetition> repetitions_of(const TokenFacts& facts) {
  std::vector<fate::Repetition> repetitions;
  for (const auto& operation : facts.operations) {
    const bool repeats = operation.kind == feed::EventKind::queue_created ||
                         (selection::contains(operation.tokens, facts.id) && !operation.is_forward &&
                          operation.kind != feed::EventKind::revoked);
    if (repeats) repetitions.push_back({operation.id, in_microseconds(operation.at), operation.queue});
  }
  return repetitions;
}

fate::TokenPlace place_in(const TokenFacts& facts, const TokenPosition& position) {
  if (!facts.exists) return fate::TokenPlace::none;
  return facts.id > position.cursor ? fate::TokenPlace::above_cursor : position.gap;
}

const feed::Operation* move_over(const TokenFacts& facts, const std::string& queue) {
  const auto found =
      std::find_if(facts.operations.begin(), facts.operations.end(), [&](const auto& operation) {
        return operation.is_forward && operation.queue == queue &&
               selection::contains(operation.tokens, facts.id) &&
               (!facts.exists || feed::can_be_of(facts, operation.at));
      });
  return found == facts.operations.end() ? nullptr : &*found;
}

/// A claim does not check accounts; it counts those only when the batch is written.
queue::SkipCounts skipped_by_claim(const queue::BatchRecord& claim) {
  return {.expired = claim.skipped.expired, .consumed = claim.skipped.consumed};
}

/// True if its message ended it before the last claim or consumer came to it, or none has yet.
bool is_cancelled(const TokenFacts& facts, const fate::Evidence& evidence, const TokenPosition* position) {
  if (facts.consumed_as.empty() || !facts.consumed_at) return false;
  if (evidence.place != fate::TokenPlace::none) return true;
  std::optional<Moment> passed;
  if (!evidence.batches.empty() && evidence.batches.back().ended_at != 0)
    passed = Moment(std::chrono::microseconds(evidence.batches.back().ended_at));
  else if (position != nullptr && position->skip)
    passed = position->skip->claimed_at;
  return !passed || std::chrono::floor<std::chrono::seconds>(*passed) >= *facts.consumed_at;
}

/// `position`: of the queue that decides where the token is; null for none.
fate::Evidence evidence_of(const TokenFacts& facts, const TokenPosition* position) {
  fate::Evidence evidence{.batches = holding_batches(facts),
                          .repetitions = repetitions_of(facts),
                          .is_due = facts.state == "due",
                          .is_over = facts.state == "expired" || facts.state == "consumed"};
  if (position == nullptr) {
    if (facts.exists && facts.queues.empty()) evidence.passed_by = fate::PassedBy::untaken;
    evidence.is_cancelled = is_cancelled(facts, evidence, position);
    return evidence;
  }
  evidence.place = place_in(facts, *position);
  if (move_over(facts, position->queue) != nullptr) evidence.passed_by = fate::PassedBy::move;
  evidence.is_missed = position->missed;
  evidence.is_recorded = position->records_complete;
  evidence.was_unfit = position->skip && skipped_by_claim(*position->skip).total() > 0;
  evidence.is_cancelled = is_cancelled(facts, evidence, position);
  return evidence;
}

/// The position that decides. A queue in which the token waits takes precedence over others, unless only
/// others have held it.
const TokenPosition* deciding_position(const TokenFacts& facts) {
  const TokenPosition* found = nullptr;
  for (const auto& position : facts.queues) {
    const bool knows_it = std::any_of(facts.batches.begin(), facts.batches.end(),
                                      [&](const auto& batch) { return batch.queue == position.queue; });
    if (place_in(facts, position) == fate::TokenPlace::none || (!knows_it && !facts.batches.empty()))
      continue;
    if (found == nullptr) found = &position;
  }
  if (found == nullptr && facts.batches.empty() && !facts.queues.empty()) return &facts.queues.front();
  return found;
}

/// The same counts include tokens skipped by the claim and when the line was written, so a reason is certain
/// only if there is no other.
void find_reason(const TokenFacts& facts, const queue::SkipCounts& counts, TokenStatus& status) {
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : counts.by_reason()) {
    if (count > 0) reasons.emplace_back(reason);
  }
  status.reason_certain = reasons.size() == 1;
  const bool fits = std::find(reasons.begin(), reasons.end(), facts.state) != reasons.end();
  if (status.reason_certain) status.reason = reasons.front();
  if (reasons.size() > 1 && fits) status.reason = facts.state;
}

std::size_t rank_of(const std::string& queue, const TokenFacts& facts) {
  const auto found = std::find_if(facts.queues.begin(), facts.queues.end(),
                                  [&](const auto& position) { return position.queue == queue; });
  return static_cast<std::size_t>(found - facts.queues.begin());
}

TokenDelivery judge_delivery(const TokenFacts& facts, const feed::DeliveryRecord& delivery) {
  TokenDelivery status{.delivery = delivery, .decisive = delivery.last()};
  bool is_unknown = delivery.unknowns > 0;
  for (const auto& attempt : delivery.attempts) {
    is_unknown = is_unknown || attempt.state == fate::outcome_name(fate::Outcome::unknown);
    if (attempt.state != fate::outcome_name(fate::Outcome::accepted)) continue;
    ++status.accepted;
    status.decisive = attempt;
  }
  status.maybe = status.accepted == 0 && is_unknown;
  // Its unknowns count a lease whose owner died after it had begun, too.
  if (status.accepted > 0) status.perhaps = delivery.unknowns;
  const auto own = in_queue(facts, delivery.queue);
  auto evidence = evidence_of(own, own.queues.empty() ? nullptr : &own.queues.front());
  evidence.delivery = {.last = fate::find_outcome(delivery.last().state).value_or(fate::Outcome::unknown),
                       .was_accepted = status.accepted > 0 || delivery.accepted_at,
                       .will_be_tried = delivery.not_before.has_value()};
  if (const auto report = delivery.deciding_report)
    evidence.delivery->reported = fate::find_outcome(delivery.reports[*report].state);
  const auto fate = fate::judge_fate(evidence);
  status.outcome = fate.outcome;
  status.fault = fate.fault;
  status.next = fate.next;
  status.is_of_other_queue = !facts.queues.empty() && facts.queues.front().queue != delivery.queue;
  return status;
}

}  // namespace

TokenStatus judge_token(const TokenFacts& facts) {
  const auto* position = deciding_position(facts);
  const auto fate = fate::judge_fate(evidence_of(facts, position));
  TokenStatus status{.outcome = fate.outcome,
                     .fault = fate.fault,
                     .times = fate.times,
                     .maybe = fate.maybe,
                     .next = fate.next,
                     .queue = position == nullptr ? "" : position->queue};
  if (fate.batch) status.batch = facts.batches[*fate.batch];
  if (fate::is_place(status.outcome) && facts.state != "due") status.reason = facts.state;
  if (status.outcome == fate::Outcome::moved_past) status.operation = *move_over(facts, position->queue);
  const bool is_cancelled = status.outcome == fate::Outcome::cancelled;
  if (status.outcome != fate::Outcome::skipped && !is_cancelled) return status;
  if (is_cancelled && !status.next && !status.batch) status.skip = position->skip;
  if (is_cancelled) {
    status.reason = facts.consumed_as;
    status.reason_certain = true;
    return status;
  }
  if (status.next) {
    status.reason = facts.state;
    status.reason_certain = true;
    return status;
  }
  if (!status.batch) status.skip = position->skip;
  find_reason(facts, status.batch ? status.batch->skipped : skipped_by_claim(*status.skip), status);
  return status;
}

std::vector<TokenDelivery> judge_deliveries(const TokenFacts& facts) {
  std::vector<TokenDelivery> statuses;
  for (const auto& delivery : facts.deliveries)
    statuses.push_back(judge_delivery(facts, delivery));
  std::stable_sort(statuses.begin(), statuses.end(), [&](const auto& a, const auto& b) {
    return rank_of(a.delivery.queue, facts) < rank_of(b.delivery.queue, facts);
  });
  return statuses;
}

TokenReport report_on(TokenFacts token) {
  auto deliveries = judge_deliveries(token);
  if (!deliveries.empty()) token = without_deliveries(std::move(token));
  const auto status = deliveries.empty() || !token.batches.empty() ? judge_token(token) : TokenStatus{};
  return {.token = std::move(token), .status = status, .deliveries = std::move(deliveries)};
}

std::vector<TokenReport> reports_by_queue(const TokenFacts& token, const std::vector<std::string>& queues) {
  std::vector<TokenReport> reports;
  const auto add = [&](const std::string& queue) {
    if (std::any_of(reports.begin(), reports.end(), [&](const auto& known) { return known.queue == queue; }))
      return;
    reports.push_back(report_on(in_queue(token, queue)));
    reports.back().queue = queue;
  };
  for (const auto& position : token.queues) {
    if (std::find(queues.begin(), queues.end(), position.queue) != queues.end()) add(position.queue);
  }
  for (const auto& batch : token.batches)
    add(batch.queue);
  for (const auto& delivery : token.deliveries)
    add(delivery.queue);
  return reports;
}

TokenFacts in_queue(TokenFacts facts, const std::string& queue) {
  const auto is_of_another = [&](const auto& record) { return record.queue != queue; };
  std::erase_if(facts.batches, is_of_another);
  std::erase_if(facts.queues, is_of_another);
  std::erase_if(facts.deliveries, is_of_another);
  return facts;
}

TokenFacts without_deliveries(TokenFacts facts) {
  const auto deliveries = std::exchange(facts.deliveries, {});
  const auto is_delivered = [&](const auto& record) {
    return std::any_of(deliveries.begin(), deliveries.end(),
                       [&](const auto& delivery) { return delivery.queue == record.queue; });
  };
  std::erase_if(facts.batches, is_delivered);
  std::erase_if(facts.queues, is_delivered);
  return facts;
}

void set_deliveries(TokenFacts& facts, const std::vector<feed::DeliveryRecord>& deliveries) {
  const auto is_anothers = [&](Moment at) { return facts.exists && !feed::can_be_of(facts, at); };
  for (auto delivery : deliveries) {
    if (delivery.token != facts.id) continue;
    std::erase_if(delivery.attempts, [&](const auto& attempt) { return is_anothers(attempt.at); });
    if (delivery.accepted_at && is_anothers(*delivery.accepted_at)) delivery.accepted_at.reset();
    for (auto& attempt : delivery.attempts)
      attempt.token = facts;
    if (!delivery.attempts.empty()) facts.deliveries.push_back(std::move(delivery));
  }
}

const feed::Operation* revocation_of(const TokenFacts& token) {
  const auto found =
      std::find_if(token.operations.rbegin(), token.operations.rend(), [&](const auto& operation) {
        return operation.kind == feed::EventKind::revoked &&
               selection::contains(operation.tokens, token.id) && feed::can_be_of(token, operation.at);
      });
  return found == token.operations.rend() ? nullptr : &*found;
}

}  // namespace mailroom::audit
