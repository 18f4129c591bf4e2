// The work of mailroom reconcile, and what it finds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/timeline.hpp"
#include "reconcile/judgement.hpp"
#include "reconcile/people.hpp"
#include "selection/id_range.hpp"
#include "status/pending_tokens.hpp"
#include "status/unmailed.hpp"

namespace mailroom::reconcile {

/// How many tokens of a queue have an outcome, for one reason.
struct OutcomeCount {
  fate::Outcome outcome = fate::Outcome::unexplained;
  std::string explanation{};  ///< may be empty
  std::int64_t tokens = 0;
};

/// Ids of tokens that are at fault for one reason.
struct FaultyIds {
  fate::Outcome outcome = fate::Outcome::unexplained;
  std::string reason;
  std::vector<selection::IdRange> ids{};  ///< at most `most_listed_ranges`
  std::int64_t omitted = 0;               ///< tokens beyond these
};

constexpr std::size_t most_listed_ranges = 100'000;

/// The tokens of a period in one queue.
struct QueueReconciliation {
  std::string queue;
  std::int64_t tokens = 0;             ///< those that the queue takes, or has emitted without that
  std::vector<OutcomeCount> counts{};  ///< by outcome, the largest first within each
  std::vector<FaultyIds> faulty{};     ///< missed or unexplained
  /// Emitted in the period, but no longer in the database: their accounts were deleted, or they were.
  std::int64_t deleted = 0;
  std::vector<std::string>
      gap_holders{};  ///< sessions that keep tokens in gaps: `pid 4567 (psql, user alice)`

  std::int64_t tokens_with(fate::Outcome outcome) const;
};

struct Reconciliation {
  Moment now{};  ///< the server's clock, in whole seconds
  audit::Period period{};
  std::vector<QueueReconciliation> queues{};
  std::optional<Moment> pruned_at{};  ///< when prune last removed tokens, if that was in the period or later
  status::ScheduledMessages scheduled{};    ///< which have no token yet, whenever they were asked for
  status::LostMessages lost{};              ///< of the period, which will never have one
  std::int64_t accounts_without_token = 0;  ///< of the last day, if the request counts them

  std::int64_t tokens_with(fate::Outcome outcome) const;
};

struct ReconcileRequest {
  std::vector<std::string> queues{};
  std::string since{};  ///< as parse_moment reads it, by the server's clock; empty for 24 hours ago
  std::string until{};  ///< likewise; empty: the present
  const ConsumerOutput* output = nullptr;  ///< of the only queue, to compare the records with
  bool counts_accounts = false;            ///< those without a token, if the period ends now
  /// Of the period, whom to list; nullptr for nobody. Its times do not count.
  const selection::Selection* listed = nullptr;
  /// Called with some thousands at a time, queue after queue, nearly in the order of their tokens: one whose
  /// batch must be known first comes later. Memory does not grow with their number.
  OnPeople on_people{};
};

/// Accounts for every committed token of the period in each queue, in one read-only snapshot; takes no lock
/// that anything waits for. Throws Error(usage) as parse_period(), DatabaseError MR001 for an unknown queue.
Reconciliation reconcile(db::Connection& connection, const ReconcileRequest& request);

/// `selection` with the tokens of `queue` that have its outcomes, and without these: its condition in SQL
/// then says all. Reads them as reconcile() does, since the beginning if the selection names no time. A
/// selection without outcomes stays as it is.
selection::Selection resolve_outcomes(db::Connection& connection, const std::string& queue,
                                      selection::Selection selection);

}  // namespace mailroom::reconcile
