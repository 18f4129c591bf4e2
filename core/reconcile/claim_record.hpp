// A queue's state and operations, with which reconcile explains what became of each token.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "reconcile/consumer_output.hpp"

namespace mailroom::reconcile {

/// An operation on a queue that may explain what became of a token.
struct QueueOperation {
  std::int64_t id = 0;
  std::string kind;
  std::int64_t at = 0;  ///< microseconds since 1970
  std::string actor;
  std::string reason;      ///< may be empty
  std::int64_t first = 0;  ///< of the ids that the cursor moved over; of a new queue, of those it begins with
  std::int64_t end = 0;    ///< exclusive
  bool is_forward = false;                    ///< a move of the cursor that skips tokens
  std::optional<std::string> actions_before;  ///< `activation,password_recovery`; nullopt for all
  std::optional<std::string> actions_after;
  bool knows_actions = false;  ///< the operation set them

  bool is_move() const { return kind == "rewind" && is_forward; }
  /// True if it lets tokens that were emitted be emitted again.
  bool repeats() const {
    return kind == "replay" || kind == "create queue" || (kind == "rewind" && !is_forward);
  }
};

/// `rewind by alice at 2026-11-21T09:30:15Z: relay was down`
std::string operation_text(const QueueOperation& operation);

/// What the database has on record of a queue, apart from its batches.
struct ClaimRecord {
  std::string queue;
  std::optional<std::string> actions;  ///< that it takes now: `activation,password_recovery`; nullopt for all
  std::int64_t cursor = 0;
  std::int64_t open_from = 0;
  std::string gap_ids;                       ///< a bigint[] as text
  bool has_deliveries = false;               ///< some tokens have outcomes
  bool has_reports = false;                  ///< something came back of some
  std::int64_t first_batch = 0;              ///< older batches cannot have tokens of the period
  std::int64_t base_batch = 0;               ///< the newest of the older ones; 0 if there is none
  std::int64_t base_cursor = 0;              ///< where the queue was then
  std::int64_t base_at = 0;                  ///< when, in microseconds since 1970
  std::int64_t incomplete_before = 0;        ///< batches of tokens created before this second may be gone
  std::string incomplete_because{};          ///< why
  const ConsumerOutput* output = nullptr;    ///< to compare with; null for none
  std::vector<QueueOperation> operations{};  ///< in the order in which they were carried out

  const QueueOperation* find_operation(std::int64_t id) const;
  /// True if the queue took the tokens of `action` at a time, as far as operations say.
  bool took(const std::string& action, std::int64_t at) const;
  bool takes(const std::string& action) const;
  /// The first change of the queue's actions after `at` before which it did not take `action`.
  const QueueOperation* change_that_added(const std::string& action, std::int64_t at) const;
};

/// Reads it within the caller's transaction; `since` is the beginning of the period in seconds. Throws
/// DatabaseError MR001 for an unknown queue.
ClaimRecord read_claim_record(pqxx::transaction_base& transaction, const std::string& queue,
                              std::int64_t since);

}  // namespace mailroom::reconcile
