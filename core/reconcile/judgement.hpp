// The classes into which reconcile puts tokens, and what decides the class of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reconcile/claim_record.hpp"
#include "reconcile/stretches.hpp"

namespace mailroom {

/// What became of a token in a queue. A token is in one class only.
enum class TokenClass {
  emitted,        ///< by one batch
  emitted_again,  ///< by several batches, or perhaps by an abandoned attempt too
  accepted,       ///< the outcomes that deliveries record
  rejected,
  unknown,
  expired,
  cancelled,
  deferred,
  skipped,    ///< by a claim or a consumer, which counted it
  in_flight,  ///< in a batch that is leased
  in_gap,     ///< committed late; a claim will find it
  waiting,    ///< above the cursor
  dead_letter,
  moved_past,      ///< an operator moved the cursor over it
  not_taken,       ///< passed before the queue took its action, or before the queue began
  before_records,  ///< it may have been emitted, but the records of that time are incomplete
  unexplained,
};

/// The word for programs: `emitted_again`.
const char* token_class_name(TokenClass token_class);

/// Facts about tokens of a stretch that are alike.
struct TokenFact {
  std::string action;
  std::optional<std::int64_t> created_late;  ///< in seconds, if later than Situation::second()
  bool was_consumed = false;                 ///< when they were passed or skipped
  bool was_expired = false;                  ///< likewise
  bool is_early = false;                     ///< created before ClaimRecord::incomplete_before
  std::string outcome;                       ///< the state of their deliveries; empty without
  bool will_be_tried = false;                ///< they are deferred, and have a time
};

/// A class, and what the batch or claim must confirm when all its tokens are known.
enum class Doubt {
  none,
  skip_count,     ///< the claim counted as many skipped tokens
  emitted_count,  ///< the batch counted as many tokens
  no_outcome,     ///< no token of the batch has an outcome
};

struct Judgement {
  TokenClass token_class = TokenClass::unexplained;
  std::string explanation{};  ///< may be empty; why it is unexplained
  Doubt doubt = Doubt::none;
  const Piece* source = nullptr;  ///< of the doubt
};

/// Judges tokens of a situation; nullopt if the queue neither takes them nor has anything on record of them.
std::optional<Judgement> judge_tokens(const ClaimRecord& record, const Situation& situation,
                                      const TokenFact& fact);

}  // namespace mailroom
