// The definition of a queue as status needs it: actions, priority, rates and pause.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "config/rate.hpp"
#include "db/connection.hpp"

namespace mailroom::status {

/// A rate that a queue keeps, and how much of it has been taken.
struct BudgetStatus {
  std::string name;  ///< of the queue, or of what several queues share
  config::Rate rate{};
  int burst = 1;
  std::chrono::duration<double> ahead{};  ///< how long until the rate allows what has been taken

  /// How many tokens may be taken at once now.
  std::int64_t left() const;
  /// How long until that many tokens may be taken at once, or the burst if it is less.
  Milliseconds wait_for(std::int64_t tokens) const;
};

struct PauseStatus {
  Moment since{};
  Milliseconds lasts{};
  std::string actor;
  std::string reason;  ///< may be empty
};

/// What makes a queue different from others.
struct QueueRules {
  std::vector<std::string> actions;  ///< whose tokens it takes; empty for all
  int priority = 0;
  std::vector<BudgetStatus> budgets;  ///< ordered by name
  std::optional<PauseStatus> pause;

  /// How long until every budget allows that many tokens; 0 without a budget.
  Milliseconds wait_for(std::int64_t tokens) const;
};

/// Reads them within the caller's transaction. Those of an unknown queue are the defaults.
QueueRules read_queue_rules(pqxx::transaction_base& transaction, const std::string& queue);

}  // namespace mailroom::status
