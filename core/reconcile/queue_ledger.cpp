// Checks tokens against the numbers of their batch when all tokens of the batch are known.

#include "reconcile/queue_ledger.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace mailroom::reconcile {
namespace {

/// As many as one statement counts.
constexpr std::size_t most_runs = 100'000;
constexpr std::size_t most_situations = 20'000;
/// Neighbouring stretches of a batch with a mask are in two situations by turns.
constexpr std::ptrdiff_t recent_situations = 4;

using CountKey = std::pair<fate::Outcome, std::string>;

/// What a token is when the numbers of its batch or claim are known: `reason` is why they refute it.
CountKey settled_key(const CountKey& judged, const std::string& reason, bool are_counted) {
  if (!reason.empty()) return {fate::Outcome::unexplained, reason};
  if (are_counted && judged.first == fate::Outcome::unexplained)
    return {fate::Outcome::skipped, "expired then, and extended since"};
  return judged;
}

}  // namespace

void QueueLedger::add(const Stretch& stretch) {
  const auto recent = situations_.end() - std::min(recent_situations, std::ssize(situations_));
  auto same = std::find_if(recent, situations_.end(), [&](const auto& situation) {
    return situation.ranges == stretch.situation.ranges;
  });
  if (same == situations_.end()) same = situations_.insert(same, stretch.situation);
  runs_.push_back({.first = stretch.first,
                   .end = stretch.end,
                   .situation = static_cast<std::size_t>(same - situations_.begin())});
  if (runs_.size() >= most_runs || situations_.size() >= most_situations) count_runs();
}

void QueueLedger::count_runs() {
  if (runs_.empty()) return;
  has_listed_.assign(situations_.size(), false);
  checks_of_.assign(situations_.size(), {});
  counter_.count(situations_, runs_, [&](std::size_t situation, const TokenFact& fact, std::int64_t tokens) {
    note(situation, fact, tokens);
  });
  list_tokens();
  remember_pending_runs();
  const auto position = runs_.back().end;
  situations_.clear();
  runs_.clear();
  settle_up_to(position);
}

void QueueLedger::note(std::size_t situation, const TokenFact& fact, std::int64_t tokens) {
  const auto judgement = judge_tokens(record_, situations_[situation], fact);
  if (!judgement) return;
  result_.tokens += tokens;
  found_[fact.action] += tokens;
  if (fact.delivered) {
    for (const auto& range : situations_[situation].ranges) {
      if (range.is_of_batch()) delivered_[range.source] = range.batch_end;
    }
  }
  if (judgement->check != CountCheck::none) return add_pending(situation, *judgement, tokens);
  counts_[{judgement->outcome, judgement->explanation}] += tokens;
  if (is_listed({judgement->outcome, judgement->explanation})) has_listed_[situation] = true;
}

void QueueLedger::add_pending(std::size_t situation, const Judgement& judgement, std::int64_t tokens) {
  const CheckKey key{judgement.check, judgement.source->source};
  auto& pending = pending_.try_emplace(key, Pending{.source = *judgement.source}).first->second;
  pending.tokens += tokens;
  if (judgement.outcome == fate::Outcome::unexplained) pending.unexplained += tokens;
  pending.outcomes[{judgement.outcome, judgement.explanation}] += tokens;
  auto& checks = checks_of_[situation];
  if (std::find(checks.begin(), checks.end(), key) == checks.end()) checks.push_back(key);
}

void QueueLedger::remember_pending_runs() {
  for (const auto& run : runs_) {
    for (const auto& key : checks_of_[run.situation]) {
      auto& pending = pending_.at(key);
      const auto& situation = situations_[run.situation];
      if (pending.situations.empty() || pending.situations.back().ranges != situation.ranges)
        pending.situations.push_back(situation);
      pending.runs.push_back({run.first, run.end, pending.situations.size() - 1});
    }
  }
}

void QueueLedger::settle_up_to(std::int64_t position) {
  for (auto check = pending_.begin(); check != pending_.end();) {
    if (check->second.source.batch_end > position) {
      ++check;
      continue;
    }
    settle(check->first, check->second);
    check = pending_.erase(check);
  }
  std::erase_if(delivered_, [&](const auto& each) { return each.second <= position; });
}

std::string QueueLedger::reason_for(const CheckKey& key, const Pending& pending) const {
  const auto& [check, batch] = key;
  const auto& source = pending.source;
  if (check == CountCheck::skip_count) {
    if (pending.tokens - pending.unexplained <= source.skipped) return "";
    return "in no batch, and more of them than their claim counts as skipped";
  }
  const auto delivered = delivered_.find(batch);
  if (delivered != delivered_.end()) return "without an outcome, unlike others of its batch";
  if (!source.is_short || pending.tokens <= source.emitted) return "";
  return "its batch has more tokens than it counts";
}

void QueueLedger::settle(const CheckKey& key, const Pending& pending) {
  const auto reason = reason_for(key, pending);
  // The claim has counted all of them: those that look due were not when it passed them.
  const bool are_counted =
      reason.empty() && key.first == CountCheck::skip_count && pending.tokens <= pending.source.skipped;
  bool has_listed = false;
  for (const auto& [judged, tokens] : pending.outcomes) {
    const auto settled = settled_key(judged, reason, are_counted);
    counts_[settled] += tokens;
    has_listed = has_listed || is_listed(settled);
  }
  if (has_listed) list_pending(key, pending, reason, are_counted);
}

void QueueLedger::list_pending(const CheckKey& key, const Pending& pending, const std::string& reason,
                               bool are_counted) {
  counter_.list(pending.situations, pending.runs,
                [&](std::size_t situation, const TokenFact& fact, std::int64_t id) {
                  const auto judgement = judge_tokens(record_, pending.situations[situation], fact);
                  const bool is_of_check =
                      judgement && judgement->check == key.first && judgement->source->source == key.second;
                  if (!is_of_check) return;
                  list(settled_key({judgement->outcome, judgement->explanation}, reason, are_counted), id,
                       judgement->at);
                });
}

bool QueueLedger::is_listed(const CountKey& key) const {
  return fate::is_fault(key.first) || is_wanted(key);
}

bool QueueLedger::is_wanted(const CountKey& key) const {
  // The explanation of a skipped token begins with the reason.
  return wanted_ != nullptr && wanted_->wants(key.first, key.second.starts_with("expired"));
}

void QueueLedger::list_tokens() {
  std::vector<TokenCounter::Run> runs;
  std::copy_if(runs_.begin(), runs_.end(), std::back_inserter(runs),
               [&](const auto& run) { return has_listed_[run.situation]; });
  if (runs.empty()) return;
  counter_.list(situations_, runs, [&](std::size_t situation, const TokenFact& fact, std::int64_t id) {
    const auto judgement = judge_tokens(record_, situations_[situation], fact);
    if (!judgement || judgement->check != CountCheck::none) return;
    list({judgement->outcome, judgement->explanation}, id, judgement->at);
  });
}

void QueueLedger::list(const CountKey& key, std::int64_t id, std::int64_t at) {
  if (fate::is_fault(key.first)) add_faulty(key.first, key.second, id);
  if (is_wanted(key)) on_judged_({.id = id, .outcome = key.first, .explanation = key.second, .at = at});
}

void QueueLedger::add_faulty(fate::Outcome outcome, const std::string& reason, std::int64_t id) {
  auto& all = result_.faulty;
  auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.reason == reason; });
  if (found == all.end()) found = all.insert(found, {.outcome = outcome, .reason = reason});
  if (!found->ids.empty() && found->ids.back().end == id && found->omitted == 0) {
    ++found->ids.back().end;
  } else if (found->ids.size() < most_listed_ranges) {
    found->ids.push_back({.first = id, .end = id + 1});
  } else {
    ++found->omitted;
  }
}

QueueReconciliation QueueLedger::finish() {
  count_runs();
  settle_up_to(std::numeric_limits<std::int64_t>::max());
  for (const auto& [key, tokens] : counts_)
    result_.counts.push_back({.outcome = key.first, .explanation = key.second, .tokens = tokens});
  std::stable_sort(result_.counts.begin(), result_.counts.end(), [](const auto& a, const auto& b) {
    return std::pair(a.outcome, -a.tokens) < std::pair(b.outcome, -b.tokens);
  });
  return std::move(result_);
}

}  // namespace mailroom::reconcile
