// The rules in their order: outcome, batches, place in the queue, and the output of consumers.

#include "reconcile/judgement.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace mailroom {
namespace {

/// Between the time of a row and that of the operation that wrote it, and when the server's clock is set.
constexpr std::int64_t clock_slack = 1'000'000;
constexpr std::int64_t longest_operation = 60'000'000;

constexpr const char* lost_reason = "due when the cursor passed it, and in no batch";

class Judge {
 public:
  Judge(const ClaimRecord& record, const Situation& situation, const TokenFact& fact)
      : record_(record), situation_(situation), fact_(fact) {
    for (const auto* piece : situation.emissions()) {
      if (is_of_token(*piece)) emissions_.push_back(piece);
    }
    passing_ = situation.last_passing();
  }

  /// By the records, and then by the output of the consumers.
  std::optional<Judgement> judge() const {
    auto judgement = judge_records();
    const bool is_known = judgement && judgement->token_class == TokenClass::unexplained;
    if (record_.output == nullptr || is_known) return judgement;
    if (auto difference = judge_output()) return difference;
    return judgement;
  }

 private:
  std::optional<Judgement> judge_records() const {
    if (!record_.takes(fact_.action)) return judge_untaken();
    if (was_shared())
      return unexplained("its batch was taken over from a session that went on, and may have emitted it too");
    if (!fact_.outcome.empty()) return judge_outcome();
    if (!emissions_.empty()) return judge_emissions();
    return judge_place();
  }

  /// True if two sessions had its batch at the same time.
  bool was_shared() const {
    return std::any_of(situation_.pieces.begin(), situation_.pieces.end(), [&](const auto& piece) {
      return piece.lives_on && (piece.is_batch() || piece.kind == PieceKind::skipped) && is_of_token(piece);
    });
  }

  /// Every attempt may have written a token, whether it was acknowledged or not. A batch that was
  /// acknowledged before the files were read has written its tokens.
  std::optional<Judgement> judge_output() const {
    const auto written = situation_.times_written();
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (const auto& piece : situation_.pieces) {
      const bool may_be_written = piece.is_batch() || piece.kind == PieceKind::cut ||
                                  (piece.kind == PieceKind::skipped && record_.has_deliveries);
      if (may_be_written && is_of_token(piece)) most += piece.attempts;
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

  /// False if the batch was leased before the token was created: the id belonged to another token then.
  bool is_of_token(const Piece& piece) const {
    return !fact_.created_late || *fact_.created_late <= second_of(piece.leased_at);
  }

  static Judgement unexplained(std::string reason) {
    return {.token_class = TokenClass::unexplained, .explanation = std::move(reason)};
  }

  const Piece* batch_in(BatchState state) const {
    for (const auto& piece : situation_.pieces) {
      if (piece.is_batch() && piece.state == state && is_of_token(piece)) return &piece;
    }
    return nullptr;
  }

  const Piece* skipping() const {
    for (const auto& piece : situation_.pieces) {
      if (piece.kind == PieceKind::skipped && is_of_token(piece)) return &piece;
    }
    return nullptr;
  }

  /// A queue whose actions have changed may have emitted tokens that it does not take any more.
  std::optional<Judgement> judge_untaken() const {
    for (const auto* emission : emissions_) {
      if (!record_.took(fact_.action, emission->leased_at))
        return unexplained("emitted, though the queue does not take its action");
    }
    return std::nullopt;
  }

  Judgement judge_outcome() const {
    if (fact_.outcome == "deferred") return judge_deferred();
    const bool has_batch =
        std::any_of(situation_.pieces.begin(), situation_.pieces.end(),
                    [](const auto& piece) { return piece.is_batch() || piece.kind == PieceKind::skipped; });
    if (!has_batch && !fact_.is_early) return unexplained("delivered, but no batch on record has it");
    constexpr std::array<std::pair<const char*, TokenClass>, 5> classes{
        {{"accepted", TokenClass::accepted},
         {"rejected", TokenClass::rejected},
         {"unknown", TokenClass::unknown},
         {"expired", TokenClass::expired},
         {"cancelled", TokenClass::cancelled}}};
    for (const auto& [name, token_class] : classes) {
      if (fact_.outcome == name) return {.token_class = token_class};
    }
    return unexplained("delivered with the outcome " + fact_.outcome);
  }

  Judgement judge_deferred() const {
    if (fact_.will_be_tried) return {.token_class = TokenClass::deferred};
    if (const auto place = judge_current()) return *place;
    return unexplained("deferred, but nothing will try it again");
  }

  /// The place of a token that is still to be emitted.
  std::optional<Judgement> judge_current() const {
    if (const auto* batch = batch_in(BatchState::open)) {
      if (batch->source < record_.open_from) return unexplained("in an open batch that no claim looks for");
      return Judgement{.token_class = TokenClass::in_flight};
    }
    if (situation_.find(PieceKind::replay) != nullptr)
      return Judgement{.token_class = TokenClass::in_gap, .explanation = "to be replayed"};
    if (situation_.find(PieceKind::gap) != nullptr)
      return Judgement{.token_class = TokenClass::in_gap, .explanation = "committed late"};
    if (situation_.find(PieceKind::above) != nullptr) return Judgement{.token_class = TokenClass::waiting};
    return std::nullopt;
  }

  Judgement judge_emissions() const {
    const auto& last = *emissions_.back();
    if (last.by_sender) return unexplained("in a batch of mailroom send, without an outcome");
    Judgement judgement = emissions_.size() == 1 ? judge_once(last) : judge_repeated();
    if (judgement.token_class == TokenClass::unexplained) return judgement;
    if (record_.has_deliveries) {
      judgement.doubt = Doubt::no_outcome;
      judgement.source = &last;
    } else if (last.is_short) {
      judgement.doubt = Doubt::emitted_count;
      judgement.source = &last;
    }
    return judgement;
  }

  static Judgement judge_once(const Piece& batch) {
    if (batch.attempts == 1) return {.token_class = TokenClass::emitted};
    return {.token_class = TokenClass::emitted_again,
            .explanation = "perhaps: an earlier attempt of its batch was abandoned"};
  }

  /// Each emission after the first needs an operation between the two that asked for it.
  Judgement judge_repeated() const {
    std::set<std::string> reasons;
    std::set<std::int64_t> used;
    for (std::size_t i = 1; i < emissions_.size(); ++i) {
      const auto* operation = operation_between(*emissions_[i - 1], *emissions_[i], used);
      if (operation == nullptr) {
        return unexplained(fmt::format("emitted by {} batches, and no operation between them asked for it",
                                       emissions_.size()));
      }
      used.insert(operation->id);
      reasons.insert(operation_text(*operation));
    }
    std::string text = fmt::format("{} times:", emissions_.size());
    for (const auto& reason : reasons)
      text += (text.back() == ':' ? " " : ", ") + reason;
    return {.token_class = TokenClass::emitted_again, .explanation = text};
  }

  const QueueOperation* operation_between(const Piece& earlier, const Piece& later,
                                          const std::set<std::int64_t>& used) const {
    for (const auto& piece : situation_.pieces) {
      if (piece.kind != PieceKind::covered || used.count(piece.source) > 0) continue;
      const auto* operation = record_.find_operation(piece.source);
      if (operation != nullptr && operation->repeats() && operation->at >= earlier.ended_at - clock_slack &&
          operation->at <= later.leased_at + clock_slack)
        return operation;
    }
    return nullptr;
  }

  Judgement judge_place() const {
    if (const auto current = judge_current()) return *current;
    if (batch_in(BatchState::dead) != nullptr) return {.token_class = TokenClass::dead_letter};
    if (const auto* piece = skipping()) {
      return {.token_class = TokenClass::skipped,
              .explanation = skip_reason("wrong status or invalid"),
              .doubt = record_.has_deliveries ? Doubt::no_outcome : Doubt::none,
              .source = piece};
    }
    return judge_passed();
  }

  std::string skip_reason(const char* otherwise) const {
    return fact_.was_consumed ? "consumed" : fact_.was_expired ? "expired" : otherwise;
  }

  /// A token below the cursor that no batch has.
  Judgement judge_passed() const {
    if (passing_ == nullptr) return unexplained("below the cursor, and no claim has passed it");
    if (const auto* operation = operation_that_passed()) {
      return {.token_class = operation->is_move() ? TokenClass::moved_past : TokenClass::not_taken,
              .explanation = operation_text(*operation)};
    }
    if (fact_.created_late && *fact_.created_late > second_of(passing_->leased_at)) {
      return unexplained("created after the cursor had passed its id");
    }
    if (const auto* change = record_.change_that_added(fact_.action, passing_->leased_at))
      return {.token_class = TokenClass::not_taken, .explanation = operation_text(*change)};
    if (fact_.was_consumed || fact_.was_expired) {
      return {.token_class = TokenClass::skipped,
              .explanation = skip_reason(""),
              .doubt = fact_.is_early ? Doubt::none : Doubt::skip_count,
              .source = passing_};
    }
    if (fact_.is_early)
      return {.token_class = TokenClass::before_records, .explanation = record_.incomplete_because};
    // Its expiry may have been changed since. Then its claim has counted it.
    auto judgement = unexplained(lost_reason);
    if (!record_.has_deliveries && passing_->skipped > 0) {
      judgement.doubt = Doubt::skip_count;
      judgement.source = passing_;
    }
    return judgement;
  }

  /// A queue that was created again begins where its cursor was set to, whatever an earlier one has passed.
  const QueueOperation* operation_that_passed() const {
    for (const auto& piece : situation_.pieces) {
      const bool was_begun =
          piece.kind == PieceKind::begun && passing_->leased_at <= piece.leased_at + clock_slack;
      if (was_begun || (piece.kind == PieceKind::covered && is_last_move(piece)))
        return record_.find_operation(piece.source);
    }
    return nullptr;
  }

  bool is_last_move(const Piece& piece) const {
    const auto* operation = record_.find_operation(piece.source);
    return operation != nullptr && operation->is_move() && passing_->first == operation->first &&
           passing_->end == operation->end && passing_->leased_at <= operation->at + clock_slack &&
           operation->at <= passing_->leased_at + longest_operation;
  }

  const ClaimRecord& record_;
  const Situation& situation_;
  const TokenFact& fact_;
  std::vector<const Piece*> emissions_;
  const Piece* passing_ = nullptr;
};

}  // namespace

const char* token_class_name(TokenClass token_class) {
  constexpr std::array names{"emitted",        "emitted_again", "accepted",    "rejected",   "unknown",
                             "expired",        "cancelled",     "deferred",    "skipped",    "in_flight",
                             "in_gap",         "waiting",       "dead_letter", "moved_past", "not_taken",
                             "before_records", "unexplained"};
  return names.at(static_cast<std::size_t>(token_class));
}

std::optional<Judgement> judge_tokens(const ClaimRecord& record, const Situation& situation,
                                      const TokenFact& fact) {
  return Judge(record, situation, fact).judge();
}

}  // namespace mailroom
