// What mailroom audit reads: the history of an account, a token, a batch or messages, and an overview of a
// period.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/next_steps.hpp"
#include "audit/timeline.hpp"
#include "audit/token_status.hpp"
#include "messages/message_record.hpp"

namespace mailroom::audit {

/// Which part of a history to read.
struct AuditRequest {
  std::vector<std::string> queues{};  ///< of several, a token's outcome is told for each
  bool only_queue = false;            ///< of the single one of `queues`, tell nothing of others
  std::string since{};                ///< as parse_moment reads it, by the server's clock; empty for no bound
  std::string until{};                ///< likewise
  std::int64_t limit = 1000;          ///< entries, and tokens of an account
  bool batches = false;               ///< in an overview, add an entry for each batch
  std::string address{};              ///< that was asked for; empty if none was
};

/// The history of one account, token or batch, or of messages.
struct History {
  Moment now{};                 ///< the server's clock, in whole seconds
  bool is_of_account = false;   ///< false for the history of a token, a batch or messages
  std::int64_t account_id = 0;  ///< 0 if unknown
  std::optional<accounts::AccountRecord> account{};  ///< nullopt if it was deleted
  std::optional<queue::BatchRecord> batch{};
  std::vector<messages::MessageSummary> messages{};  ///< newest first; of an account, those to its address
  bool has_older_messages = false;                   ///< to the same address or of the same reference
  std::string former_address{};  ///< that was asked for and is nobody's now, but mails went to it
  /// At most 20: those of the account or the address that was asked for, then others; newest first.
  std::vector<TokenReport> tokens{};
  std::vector<NextStep> next{};  ///< of the first of them, or of all recipients of its message
  std::int64_t tokens_total = 0;
  Timeline timeline{};
};

/// Totals of the batches of a queue that were last leased within a period.
struct QueueTotals {
  std::string queue{};
  std::int64_t batches = 0;
  std::int64_t emitted = 0;     ///< tokens
  queue::SkipCounts skipped{};  ///< tokens
  std::int64_t repeated = 0;    ///< batches that were leased more than once
  std::int64_t open = 0;
  std::int64_t dead = 0;
  std::int64_t records = 0;  ///< batches, and claims that only skipped tokens
};

/// The events of all queues and accounts, and of the schema, within a period.
struct Overview {
  Moment now{};  ///< the server's clock, in whole seconds
  Period period{};
  std::vector<QueueTotals> queues{};  ///< those with a batch in the period, ordered by name
  Timeline timeline{};
};

// Each function reads one snapshot, in a transaction of its own. It throws Error(usage) for an invalid moment
// or an empty period. All but the function for batches throw DatabaseError MR001 for an unknown queue.

/// `account` may have been deleted. `messages` are those to its address, newest first. Throws Error(unusable)
/// if there is no record of it.
History read_account_history(db::Connection& connection, std::int64_t account,
                             const std::vector<std::int64_t>& messages, const AuditRequest& request);
/// `messages` is not empty. Throws Error(unusable) if one does not exist.
History read_message_history(db::Connection& connection, const std::vector<std::int64_t>& messages,
                             const AuditRequest& request);
/// Throws Error(unusable) if there is no record of `token`.
History read_token_history(db::Connection& connection, std::int64_t token, const AuditRequest& request);
/// Throws Error(unusable) if there is no record of `batch`.
History read_batch_history(db::Connection& connection, std::int64_t batch, const AuditRequest& request);
/// Reads operations and migrations, and batches if requested. Without `since` it begins 24 hours ago.
Overview read_overview(db::Connection& connection, const AuditRequest& request);

}  // namespace mailroom::audit
