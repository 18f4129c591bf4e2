// Finds the evidence in the recorded ranges, explains its fate, and compares it with the output of consumers.

#include "reconcile/judgement.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/text.hpp"

namespace mailroom::reconcile {
namespace {

/// Between the time of a row and that of the operation that wrote it, and when the server's clock is set.
constexpr std::int64_t clock_slack = 1'000'000;
constexpr std::int64_t longest_operation = 60'000'000;

class Reading {
 public:
  Reading(const ClaimRecord& record, const Situation& situation, const TokenFact& fact)
      : record_(record), situation_(situation), fact_(fact), passing_(situation.last_passing()) {
    for (const auto& range : situation.ranges) {
      if (range.is_of_batch() && is_of_token(range)) batches_.push_back(&range);
    }
    std::stable_sort(batches_.begin(), batches_.end(),
                     [](const auto* a, const auto* b) { return a->source < b->source; });
    std::copy_if(batches_.begin(), batches_.end(), std::back_inserter(emissions_),
                 [](const auto* range) { return range->is_batch() && range->state == BatchState::emitted; });
  }

  /// By the records, and then by the output of the consumers.
  std::optional<Judgement> judge() {
    const bool is_taken = record_.takes(fact_.action);
    auto judgement = is_taken ? judge_records() : judge_untaken();
    const bool is_known = judgement && fate::is_fault(judgement->outcome);
    if (record_.output == nullptr || is_known) return judgement;
    if (auto difference = judge_output()) return difference;
    return judgement;
  }

 private:
  /// False if the batch was leased before the token was created: the id belonged to another token then.
  bool is_of_token(const RecordedRange& range) const {
    return !fact_.created_late || fate::can_be_of(*fact_.created_late, second_of(range.leased_at));
  }

  static Judgement unexplained(std::string reason) {
    return {.outcome = fate::Outcome::unexplained, .explanation = std::move(reason)};
  }

  /// A queue whose actions have changed may have emitted tokens that it does not take any more.
  std::optional<Judgement> judge_untaken() const {
    const bool was_never_taken = std::any_of(emissions_.begin(), emissions_.end(), [&](const auto* emission) {
      return !record_.took(fact_.action, emission->leased_at);
    });
    if (was_never_taken) return unexplained("emitted, though the queue does not take its action");
    return std::nullopt;
  }

  std::optional<Judgement> judge_records() {
    const auto fate = fate::judge_fate(evidence());
    Judgement judgement{.outcome = fate.outcome, .explanation = explanation_of(fate), .at = time_of(fate)};
    set_check(fate, judgement);
    return judgement;
  }

  fate::Evidence evidence() {
    fate::Evidence evidence{.repetitions = repetitions(), .place = place()};
    evidence.is_over = evidence.place != fate::TokenPlace::none && (fact_.was_consumed || fact_.was_expired);
    evidence.is_cancelled = fact_.was_cancelled || fact_.was_replaced;
    for (const auto* range : batches_)
      evidence.batches.push_back({.state = range->state,
                                  .attempts = range->attempts,
                                  .leased_at = range->leased_at,
                                  .ended_at = range->ended_at,
                                  .is_skipped = range->kind == RangeKind::skipped,
                                  .is_by_sender = range->by_sender,
                                  .is_shared = range->lives_on,
                                  .is_out_of_reach = range->source < record_.open_from});
    if (fact_.delivered) {
      const auto& ranges = situation_.ranges;
      evidence.delivery = {
          .last = *fact_.delivered,
          .was_accepted = fact_.was_accepted,
          .will_be_tried = fact_.will_be_tried,
          .reported = fact_.reported,
          .has_batch = fact_.is_early || std::any_of(ranges.begin(), ranges.end(),
                                                     [](const auto& range) { return range.is_of_batch(); })};
    }
    if (passing_ == nullptr) {
      evidence.passed_by = fate::PassedBy::nothing;
      return evidence;
    }
    const bool was_passed_before =
        fact_.created_late && !fate::can_be_of(*fact_.created_late, second_of(passing_->leased_at));
    operation_ = operation_that_passed();
    evidence.is_missed = operation_ == nullptr && was_passed_before;
    if (operation_ != nullptr) {
      evidence.passed_by = operation_->is_move() ? fate::PassedBy::move : fate::PassedBy::untaken;
    } else if (!was_passed_before) {
      operation_ = record_.change_that_added(fact_.action, passing_->leased_at);
      if (operation_ != nullptr) evidence.passed_by = fate::PassedBy::untaken;
    }
    evidence.is_recorded = !fact_.is_early;
    evidence.was_unfit = fact_.was_consumed || fact_.was_expired;
    return evidence;
  }

  fate::TokenPlace place() const {
    if (situation_.find(RangeKind::replay) != nullptr) return fate::TokenPlace::in_replay;
    if (situation_.find(RangeKind::gap) != nullptr) return fate::TokenPlace::in_gap;
    return situation_.find(RangeKind::above) != nullptr ? fate::TokenPlace::above_cursor
                                                        : fate::TokenPlace::none;
  }

  /// The operations that let the tokens be emitted again.
  std::vector<fate::Repetition> repetitions() const {
    std::vector<fate::Repetition> found;
    for (const auto& range : situation_.ranges) {
      if (range.kind != RangeKind::covered) continue;
      const auto* operation = record_.find_operation(range.source);
      if (operation != nullptr && operation->repeats())
        found.push_back({.operation = operation->id, .at = operation->at});
    }
    return found;
  }

  /// A queue that was created again begins where its cursor was set to, whatever an earlier one has passed.
  const QueueOperation* operation_that_passed() const {
    for (const auto& range : situation_.ranges) {
      const bool was_begun =
          range.kind == RangeKind::begun && passing_->leased_at <= range.leased_at + clock_slack;
      if (was_begun || (range.kind == RangeKind::covered && is_last_move(range)))
        return record_.find_operation(range.source);
    }
    return nullptr;
  }

  bool is_last_move(const RecordedRange& range) const {
    const auto* operation = record_.find_operation(range.source);
    return operation != nullptr && operation->is_move() && passing_->first == operation->first &&
           passing_->end == operation->end && passing_->leased_at <= operation->at + clock_slack &&
           operation->at <= passing_->leased_at + longest_operation;
  }

  std::string explanation_of(const fate::Fate& fate) const {
    switch (fate.outcome) {
      case fate::Outcome::emitted_again:
        return emissions_.size() > 1 ? repetition_text(fate)
                                     : "perhaps: an earlier attempt of its batch was abandoned";
      case fate::Outcome::maybe_emitted:
        return "skipped at the last attempt of its batch, and an earlier one was abandoned";
      case fate::Outcome::skipped:
        if (fate.next)
          return fmt::format("{} before the queue came to it", fact_.was_consumed ? "consumed" : "expired");
        return fact_.was_consumed ? "consumed" : fact_.was_expired ? "expired" : "wrong status or invalid";
      case fate::Outcome::cancelled:
        if (fact_.delivered) return "";
        return fmt::format("its message was {}{}", fact_.was_cancelled ? "cancelled" : "replaced",
                           fate.next ? " before the queue came to it" : "");
      case fate::Outcome::delivered:
      case fate::Outcome::bounced:
      case fate::Outcome::complained:
        return fact_.report;
      case fate::Outcome::in_gap:
        return "committed late";
      case fate::Outcome::moved_past:
      case fate::Outcome::not_taken:
        return operation_text(*operation_);
      case fate::Outcome::not_recorded:
        return record_.incomplete_because;
      default:
        return fate::fault_text(fate.fault);
    }
  }

  /// A claim or a consumer skips what was cancelled, and counts it.
  bool is_skip(const fate::Fate& fate) const {
    return fate.outcome == fate::Outcome::skipped ||
           (fate.outcome == fate::Outcome::cancelled && !fact_.delivered);
  }

  /// When the batch that decides ended, or was leased if it is open; without one, when a claim passed it.
  std::int64_t time_of(const fate::Fate& fate) const {
    if (fate.next && is_skip(fate)) return 0;
    if (fate.batch) {
      const auto* batch = batches_.at(*fate.batch);
      return batch->state == BatchState::open ? batch->leased_at : batch->ended_at;
    }
    return is_skip(fate) && passing_ != nullptr ? passing_->leased_at : 0;
  }

  /// `2 times: rewind by alice at 2026-11-21T09:30:15Z: relay was down`
  std::string repetition_text(const fate::Fate& fate) const {
    std::set<std::string> reasons;
    for (const auto id : fate.asked_for_by)
      reasons.insert(operation_text(*record_.find_operation(id)));
    return fmt::format("{} times: {}", emissions_.size(), joined(reasons, ", "));
  }

  /// What only the numbers of a batch or a claim can show, with those of all its tokens.
  void set_check(const fate::Fate& fate, Judgement& judgement) const {
    const auto set = [&](CountCheck check, const RecordedRange* source) {
      judgement.check = check;
      judgement.source = source;
    };
    if (fate.fault == fate::Fault::lost) {
      // Its expiry may have been changed since. Then its claim has counted it.
      if (!record_.has_deliveries && passing_->skipped > 0) set(CountCheck::skip_count, passing_);
      return;
    }
    const bool is_unreached = is_skip(fate) && fate.next;
    if (fate.fault != fate::Fault::none || fact_.delivered || is_unreached) return;
    if (is_skip(fate) && !fate.batch) return set(CountCheck::skip_count, passing_);
    if (fate.times + fate.maybe == 0 && !is_skip(fate)) return;
    const auto* batch = batches_.at(*fate.batch);
    if (record_.has_deliveries) return set(CountCheck::no_outcome, batch);
    if (batch->is_batch() && batch->is_short) set(CountCheck::emitted_count, batch);
  }

  /// Every attempt may have written a token, whether it was acknowledged or not. A batch that was
  /// acknowledged before the files were read has written its tokens.
  std::optional<Judgement> judge_output() const {
    const auto written = situation_.times_written();
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (const auto& range : situation_.ranges) {
      const bool may_be_written = range.is_batch() || range.kind == RangeKind::cut ||
                                  (range.kind == RangeKind::skipped && record_.has_deliveries);
      if (may_be_written && is_of_token(range)) most += range.attempts;
    }
    for (const auto* emission : emissions_)
      least += emission->ended_at < record_.output->begun_at ? 1 : 0;
    if (written < least) {
      return unexplained(fmt::format("on record as emitted {}, and {} in the output of the consumers",
                                     times_text(least), written == 0 ? "not" : times_text(written)));
    }
    if (written > most) {
      return unexplained(fmt::format("{} in the output of the consumers, and leased {}", times_text(written),
                                     most == 0 ? "never" : times_text(most)));
    }
    return std::nullopt;
  }

  static std::string times_text(std::int64_t times) {
    return times == 1 ? "once" : fmt::format("{} times", times);
  }

  const ClaimRecord& record_;
  const Situation& situation_;
  const TokenFact& fact_;
  std::vector<const RecordedRange*> batches_;    ///< that have the token, in the order of their claims
  std::vector<const RecordedRange*> emissions_;  ///< those of them that emitted it
  const RecordedRange* passing_;
  const QueueOperation* operation_ = nullptr;  ///< that explains why it was passed
};

}  // namespace

std::optional<Judgement> judge_tokens(const ClaimRecord& record, const Situation& situation,
                                      const TokenFact& fact) {
  return Reading(record, situation, fact).judge();
}

}  // namespace mailroom::reconcile
