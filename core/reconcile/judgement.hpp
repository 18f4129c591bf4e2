// Makes the evidence that fate judges of tokens that have the same records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reconcile/claim_record.hpp"
#include "reconcile/stretches.hpp"

namespace mailroom::reconcile {

/// Facts about tokens of a stretch that are alike.
struct TokenFact {
  std::string action;
  std::optional<std::int64_t> created_late;  ///< in seconds, if later than Situation::second()
  bool was_consumed = false;                 ///< when they were passed or skipped; if they wait, now
  bool was_expired = false;                  ///< likewise
  bool was_cancelled = false;                ///< its message was, which consumed it before
  bool was_replaced = false;                 ///< likewise
  bool is_early = false;                     ///< created before ClaimRecord::incomplete_before
  std::optional<fate::Outcome> delivered{};  ///< the last outcome of their deliveries
  bool was_accepted = false;                 ///< they have been accepted, whatever that outcome is
  bool will_be_tried = false;                ///< they are deferred, and have a time
  std::optional<fate::Outcome> reported{};   ///< what came back since they were accepted
  std::string report{};                      ///< why: `hard, user_unknown`
};

/// What the numbers of the batch or of the claim must confirm when all its tokens are known.
enum class CountCheck {
  none,
  skip_count,     ///< the claim counted as many skipped tokens
  emitted_count,  ///< the batch counted as many tokens
  no_outcome,     ///< no token of the batch has an outcome
};

struct Judgement {
  fate::Outcome outcome = fate::Outcome::unexplained;
  std::string explanation{};  ///< may be empty; why it is unexplained
  std::int64_t at =
      0;  ///< when a batch ended or a claim passed them, in microseconds since 1970; 0 if unknown
  CountCheck check = CountCheck::none;
  const RecordedRange* source = nullptr;  ///< of the numbers to check
};

/// Judges tokens of a situation; nullopt if the queue neither takes them nor has anything on record of them.
std::optional<Judgement> judge_tokens(const ClaimRecord& record, const Situation& situation,
                                      const TokenFact& fact);

}  // namespace mailroom::reconcile
