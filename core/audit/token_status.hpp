// The rules by which audit says what became of a token. Pure: they take what token_facts.hpp has read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "events/event.hpp"

namespace mailroom {

/// The position of a token in a queue.
struct TokenPosition {
  std::string queue{};
  std::int64_t cursor = 0;
  bool in_gap = false;                ///< in a gap below the cursor: a replay, or a late commit
  bool takes = true;                  ///< the queue takes tokens of this action
  bool records_complete = false;      ///< the records reach back to the token's creation
  std::optional<BatchRecord> skip{};  ///< the first claim whose cursor reached it, if no batch holds it
  bool missed = false;                ///< the cursor passed its id before it was created
};

/// The data about a token. If it does not exist, only its id and estimates of created_at and expires_at.
struct TokenFacts : StoredToken {
  bool exists = true;                        ///< false if it was deleted or never committed
  std::vector<BatchRecord> batches{};        ///< those that hold it, ordered by id
  bool id_was_anothers = false;              ///< another token had its id before it was created
  std::vector<Operation> operations{};       ///< those that may have touched it
  std::vector<TokenPosition> queues{};       ///< those that take its action; the requested ones first
  std::vector<DeliveryRecord> deliveries{};  ///< without outcomes of an earlier token with its id
};

enum class Outcome {
  emitted,           ///< for certain
  maybe_emitted,     ///< in a batch whose earlier lease was not acknowledged, or whose record is
                     ///< ambiguous
  in_open_batch,     ///< leased; its line may have been written
  dead,              ///< its batch was given up after too many attempts
  skipped_in_batch,  ///< in a batch, but not due or invalid when the line was written
  waiting,           ///< due, above the cursor
  waiting_not_due,   ///< above the cursor, and will be skipped
  waiting_again,     ///< below the cursor, in a gap
  skipped,           ///< not due when the cursor reached it
  moved_past,        ///< an operator moved the cursor past it
  missed,            ///< the cursor passed its id before it was created
  not_recorded,      ///< the records do not reach back to it
  unexplained,       ///< below the cursor, and no record says why
  not_taken,         ///< no queue takes tokens of its action
};

struct TokenStatus {
  Outcome outcome = Outcome::unexplained;
  int times = 0;                       ///< number of batches that certainly emitted it
  int maybe = 0;                       ///< number of batches that may have emitted it
  std::optional<BatchRecord> batch{};  ///< the batch that decides the outcome
  std::optional<Outcome> next{};       ///< if emitted: in_open_batch, waiting or waiting_again
  std::string queue{};                 ///< where it waits or was skipped, or which does not take it
  /// Of skipped and skipped_in_batch: `expired`, `consumed`, `wrong status` or `invalid`.
  std::string reason{};
  bool reason_certain = false;           ///< recorded, not derived from the present state
  std::optional<BatchRecord> skip{};     ///< of skipped: the claim that skipped it
  std::optional<Operation> operation{};  ///< of moved_past
};

/// Derives the status of a token.
TokenStatus judge_token(const TokenFacts& facts);

/// What is known of a token in one queue.
TokenFacts in_queue(TokenFacts facts, const std::string& queue);

/// Where a token waits in a queue: waiting, waiting_not_due or waiting_again; nullopt if it does not.
std::optional<Outcome> waits_in(const TokenFacts& facts, const TokenPosition& position);

/// Returns what `batch` did with `token`, an id that it holds: emitted, maybe_emitted, skipped_in_batch,
/// in_open_batch or dead. `cut` = tokens were removed from the batch while it was open, so its counts may
/// include them.
Outcome judge_batch(const BatchRecord& batch, std::int64_t token, bool cut);

/// Returns the name in JSON output: `emitted`, `maybe emitted`, `in open batch` and so on.
const char* outcome_name(Outcome outcome);

}  // namespace mailroom
