// Settles a doubt when all tokens of its batch are known, by the numbers that the batch counted.

#include "reconcile/queue_ledger.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace mailroom {
namespace {

/// As many as one statement counts.
constexpr std::size_t most_runs = 100'000;
constexpr std::size_t most_situations = 20'000;
/// Neighbouring stretches of a batch with a mask are in two situations by turns.
constexpr std::ptrdiff_t recent_situations = 4;

}  // namespace

void QueueLedger::add(const Stretch& stretch) {
  const auto recent = situations_.end() - std::min(recent_situations, std::ssize(situations_));
  auto same = std::find_if(recent, situations_.end(), [&](const auto& situation) {
    return situation.pieces == stretch.situation.pieces;
  });
  if (same == situations_.end()) same = situations_.insert(same, stretch.situation);
  runs_.push_back({.first = stretch.first,
                   .end = stretch.end,
                   .situation = static_cast<std::size_t>(same - situations_.begin())});
  if (runs_.size() >= most_runs || situations_.size() >= most_situations) count_runs();
}

void QueueLedger::count_runs() {
  if (runs_.empty()) return;
  is_unexplained_.assign(situations_.size(), false);
  doubts_of_.assign(situations_.size(), {});
  counter_.count(situations_, runs_, [&](std::size_t situation, const TokenFact& fact, std::int64_t tokens) {
    note(situation, fact, tokens);
  });
  list_unexplained();
  remember_doubtful_runs();
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
  if (!fact.outcome.empty()) {
    for (const auto& piece : situations_[situation].pieces) {
      if (piece.is_batch() || piece.kind == PieceKind::skipped) delivered_[piece.source] = piece.batch_end;
    }
  }
  if (judgement->doubt != Doubt::none) return add_doubt(situation, *judgement, tokens);
  counts_[{judgement->token_class, judgement->explanation}] += tokens;
  if (judgement->token_class == TokenClass::unexplained) is_unexplained_[situation] = true;
}

void QueueLedger::add_doubt(std::size_t situation, const Judgement& judgement, std::int64_t tokens) {
  const DoubtKey key{judgement.doubt, judgement.source->source};
  auto& doubtful = doubts_.try_emplace(key, Doubtful{.source = *judgement.source}).first->second;
  doubtful.tokens += tokens;
  if (judgement.token_class == TokenClass::unexplained) doubtful.unexplained += tokens;
  doubtful.classes[{judgement.token_class, judgement.explanation}] += tokens;
  auto& doubts = doubts_of_[situation];
  if (std::find(doubts.begin(), doubts.end(), key) == doubts.end()) doubts.push_back(key);
}

void QueueLedger::remember_doubtful_runs() {
  for (const auto& run : runs_) {
    for (const auto& key : doubts_of_[run.situation]) {
      auto& doubtful = doubts_.at(key);
      const auto& situation = situations_[run.situation];
      if (doubtful.situations.empty() || doubtful.situations.back().pieces != situation.pieces)
        doubtful.situations.push_back(situation);
      doubtful.runs.push_back({run.first, run.end, doubtful.situations.size() - 1});
    }
  }
}

void QueueLedger::settle_up_to(std::int64_t position) {
  for (auto doubt = doubts_.begin(); doubt != doubts_.end();) {
    if (doubt->second.source.batch_end > position) {
      ++doubt;
      continue;
    }
    settle(doubt->first, doubt->second);
    doubt = doubts_.erase(doubt);
  }
  std::erase_if(delivered_, [&](const auto& each) { return each.second <= position; });
}

std::string QueueLedger::reason_for(const DoubtKey& key, const Doubtful& doubtful) const {
  const auto& [doubt, batch] = key;
  const auto& source = doubtful.source;
  if (doubt == Doubt::skip_count) {
    if (doubtful.tokens - doubtful.unexplained <= source.skipped) return "";
    return "in no batch, and more of them than their claim counts as skipped";
  }
  const auto delivered = delivered_.find(batch);
  if (delivered != delivered_.end()) return "without an outcome, unlike others of its batch";
  if (!source.is_short || doubtful.tokens <= source.emitted) return "";
  return "its batch has more tokens than it counts";
}

void QueueLedger::settle(const DoubtKey& key, const Doubtful& doubtful) {
  const auto reason = reason_for(key, doubtful);
  if (reason.empty()) {
    // The claim has counted all of them: those that look due were not when it passed them.
    const bool are_counted = key.first == Doubt::skip_count && doubtful.tokens <= doubtful.source.skipped;
    for (const auto& [count, tokens] : doubtful.classes) {
      const bool is_due_now = count.first == TokenClass::unexplained;
      counts_[is_due_now && are_counted ? CountKey{TokenClass::skipped, "expired then, and extended since"}
                                        : count] += tokens;
    }
    if (doubtful.unexplained > 0 && !are_counted) list_doubtful(key, doubtful, "");
    return;
  }
  counts_[{TokenClass::unexplained, reason}] += doubtful.tokens;
  list_doubtful(key, doubtful, reason);
}

void QueueLedger::list_doubtful(const DoubtKey& key, const Doubtful& doubtful, const std::string& reason) {
  counter_.list(doubtful.situations, doubtful.runs,
                [&](std::size_t situation, const TokenFact& fact, std::int64_t id) {
                  const auto judgement = judge_tokens(record_, doubtful.situations[situation], fact);
                  const bool is_doubtful =
                      judgement && judgement->doubt == key.first && judgement->source->source == key.second;
                  if (!is_doubtful) return;
                  if (!reason.empty()) return add_unexplained(reason, id);
                  if (judgement->token_class == TokenClass::unexplained)
                    add_unexplained(judgement->explanation, id);
                });
}

void QueueLedger::list_unexplained() {
  std::vector<TokenCounter::Run> runs;
  std::copy_if(runs_.begin(), runs_.end(), std::back_inserter(runs),
               [&](const auto& run) { return is_unexplained_[run.situation]; });
  if (runs.empty()) return;
  counter_.list(situations_, runs, [&](std::size_t situation, const TokenFact& fact, std::int64_t id) {
    const auto judgement = judge_tokens(record_, situations_[situation], fact);
    if (judgement && judgement->token_class == TokenClass::unexplained)
      add_unexplained(judgement->explanation, id);
  });
}

void QueueLedger::add_unexplained(const std::string& reason, std::int64_t id) {
  auto& all = result_.unexplained;
  auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.reason == reason; });
  if (found == all.end()) found = all.insert(found, {.reason = reason});
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
    result_.counts.push_back({.token_class = key.first, .explanation = key.second, .tokens = tokens});
  std::stable_sort(result_.counts.begin(), result_.counts.end(), [](const auto& a, const auto& b) {
    return std::pair(a.token_class, -a.tokens) < std::pair(b.token_class, -b.tokens);
  });
  return std::move(result_);
}

}  // namespace mailroom
