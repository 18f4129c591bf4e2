// What mailroom audit reads: the history of an account, a token or a batch, and an overview of a period.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/token_status.hpp"

namespace mailroom {

/// From `since` to before `until`, which have whole seconds.
struct Period {
  Moment since = Moment::min();
  Moment until = Moment::max();

  bool has(Moment moment) const { return moment >= since && moment < until; }
};

/// Returns the period between two moments, as parse_moment reads them at `now`; an empty moment is no bound.
/// Throws Error(usage) if a moment is invalid or the period is empty.
Period parse_period(const std::string& since, const std::string& until, Moment now);

struct Timeline {
  std::vector<Event> entries{};
  std::int64_t omitted = 0;  ///< number of older entries beyond the limit

  void add(const Operation& operation) { entries.push_back({operation.kind, operation.at, operation}); }
  void add(const SchemaChange& change) { entries.push_back({EventKind::migrated, change.at, change}); }
  void add(const DeliveryAttempt& attempt) { entries.push_back({EventKind::delivery, attempt.at, attempt}); }
  /// At the time when the batch was acknowledged or dead-lettered or, if it is open, claimed.
  void add(const BatchRecord& batch);
  /// Sorts the entries and keeps the newest `limit` within `period`.
  void arrange(const Period& period, std::int64_t limit);
};

/// Returns the abandoned attempts of `batch`, oldest first: the batch as it was during each lease, and the
/// time when the next attempt began.
std::vector<Event> abandonments_of(const BatchRecord& batch);

/// Which part of a history to read.
struct AuditRequest {
  std::vector<std::string> queues{};  ///< of several, a token's outcome is told for each
  bool only_queue = false;            ///< of the single one of `queues`, tell nothing of others
  std::string since{};                ///< as parse_moment reads it, by the server's clock; empty for no bound
  std::string until{};                ///< likewise
  std::int64_t limit = 1000;          ///< entries, and tokens of an account
  bool batches = false;               ///< in an overview, add an entry for each batch
};

struct TokenReport {
  TokenFacts token;    ///< with deliveries: what without_deliveries() leaves
  TokenStatus status;  ///< of queues without a delivery
  std::vector<TokenDelivery> deliveries{};
  std::string queue{};  ///< in `by_queue`: the queue
  std::vector<TokenReport>
      by_queue{};  ///< if several queues were requested: those that take it or have a record of it

  /// False if there is nothing to tell but its deliveries.
  bool has_status() const { return deliveries.empty() || status.batch.has_value(); }
};

/// The history of one account, token or batch.
struct History {
  Moment now{};                            ///< the server's clock, in whole seconds
  bool is_of_account = false;              ///< false for the history of a token or a batch
  std::int64_t account_id = 0;             ///< 0 if unknown
  std::optional<AccountRecord> account{};  ///< nullopt if it was deleted
  std::optional<BatchRecord> batch{};
  std::vector<TokenReport> tokens{};  ///< at most the newest 20, newest first
  std::int64_t tokens_total = 0;
  Timeline timeline{};
};

/// Totals of the batches of a queue that were last leased within a period.
struct QueueTotals {
  std::string queue{};
  std::int64_t batches = 0;
  std::int64_t emitted = 0;   ///< tokens
  SkipCounts skipped{};       ///< tokens
  std::int64_t repeated = 0;  ///< batches that were leased more than once
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

/// `account` may have been deleted. Throws Error(unusable) if there is no record of it.
History read_account_history(Connection& connection, std::int64_t account, const AuditRequest& request);
/// Throws Error(unusable) if there is no record of `token`.
History read_token_history(Connection& connection, std::int64_t token, const AuditRequest& request);
/// Throws Error(unusable) if there is no record of `batch`.
History read_batch_history(Connection& connection, std::int64_t batch, const AuditRequest& request);
/// Reads operations and migrations, and batches if requested. Without `since` it begins 24 hours ago.
Overview read_overview(Connection& connection, const AuditRequest& request);

}  // namespace mailroom
