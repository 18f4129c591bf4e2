// What the database says of a queue: one record, for consumers, status, doctor and metrics; and of all queues
// and budgets, read in one snapshot.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "queue/action.hpp"
#include "queue/queue_properties.hpp"

namespace mailroom::queue {

struct QueuePause {
  Moment since{};
  Milliseconds lasts{};
  std::string actor{};
  std::string reason{};  ///< may be empty
};

/// The rate that some queues keep together, or that of one queue alone, which has its name; and how much of
/// it has been taken.
struct Budget {
  std::string name;
  PacedRate paced{};
  std::chrono::duration<double> ahead{};  ///< how long until the rate allows what has been taken

  /// How many tokens may be taken at once now.
  std::int64_t left() const;
  /// How long until that many tokens may be taken at once, or the burst if it is less.
  Milliseconds wait_for(std::int64_t tokens) const;
};

struct QueueRecord {
  std::string name{};
  std::int64_t cursor = 0;
  QueueProperties properties{};
  std::optional<QueuePause> pause{};
  std::vector<Budget> budgets{};  ///< its own and the one that it shares, ordered by name

  /// How long until every budget allows that many tokens; 0 without a budget.
  Milliseconds wait_for(std::int64_t tokens) const;
};

struct QueueCatalogue {
  Moment now{};
  std::int64_t newest = 0;  ///< the highest id that was drawn
  std::vector<QueueRecord> queues{};
  std::vector<Budget> budgets{};
  Actions actions{};  ///< that queues may take

  const QueueRecord* find_queue(const std::string& name) const;
  const Budget* find_budget(const std::string& name) const;
  /// The names of the budgets that queues share.
  std::vector<std::string> shared_budgets() const;
  /// The queues that share a budget.
  std::vector<std::string> sharers_of(const std::string& budget) const;
};

/// Reads queues and budgets, each ordered by name, in the caller's transaction.
QueueCatalogue read_queues_within(pqxx::transaction_base& transaction);
QueueCatalogue read_queues(db::Connection& connection);

/// The records of some queues, ordered by name, in the caller's transaction and one statement. A queue that
/// does not exist has none.
std::vector<QueueRecord> read_records(pqxx::transaction_base& transaction,
                                      const std::vector<std::string>& names);

/// The names of all queues, in order.
std::vector<std::string> queue_names(db::Connection& connection);

/// Returns the queue. Throws Error(configuration) with the nearest name if there is none.
const QueueRecord& require_queue(const QueueCatalogue& catalogue, const std::string& name);
/// The error for a queue that does not exist; `names` are those that do.
Error unknown_queue(const std::string& name, const std::vector<std::string>& names);

}  // namespace mailroom::queue
