#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rate.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// A rate, and how many tokens may be taken at once.
struct PacedRate {
  static constexpr int default_burst = 10;

  Rate rate{};
  int burst = default_burst;

  bool operator==(const PacedRate&) const = default;
};

/// `14/s, burst 10`
std::string paced_text(const PacedRate& paced);

/// Every action, as the database names it, in the order of QueueProperties::actions.
const std::vector<std::string>& all_actions();
/// `recovery` for `password_recovery`.
std::string action_text(const std::string& action);

/// What makes a queue different from others. A queue without a definition has the defaults.
struct QueueProperties {
  std::vector<std::string> actions{};  ///< those that it takes; empty for all
  int priority = 0;
  std::optional<PacedRate> rate{};
  std::string budget{};         ///< the rate that it shares with other queues; empty for none
  std::string batch_limit{};    ///< as in the configuration; empty: not defined
  std::string batch_timeout{};  ///< the same

  bool operator==(const QueueProperties&) const = default;
  bool takes(const std::string& action) const;
};

/// Reads what mailroom_queue_definition() returns; ignores members of other types than it returns.
QueueProperties properties_of(const std::string& json);
/// What mailroom_write_queue() reads.
std::string properties_json(const QueueProperties& properties);
/// Reads a rate as mailroom_set_budget() records it; nullopt for another text.
std::optional<PacedRate> paced_of(const std::string& json);
std::string paced_json(const PacedRate& paced);

/// A property as `queue show` names it, and its value: `all` or `none` if it is not set.
struct PropertyText {
  std::string name;
  std::string value;
};
/// All of them, in one order.
std::vector<PropertyText> property_texts(const QueueProperties& properties);

struct PropertyChange {
  std::string name;
  std::string before;
  std::string after;
};
/// Those properties whose texts differ.
std::vector<PropertyChange> changes_between(const QueueProperties& before, const QueueProperties& after);

struct QueuePause {
  Moment since{};
  std::string actor{};
  std::string reason{};  ///< may be empty
};

struct QueueRecord {
  std::string name;
  std::int64_t cursor = 0;
  QueueProperties properties{};
  std::optional<QueuePause> pause{};
};

/// The rate that some queues keep together, or that of one queue alone, which has its name.
struct Budget {
  std::string name;
  PacedRate paced{};
  int left = 0;            ///< tokens that may be taken now
  Milliseconds next_in{};  ///< until the next token may be taken
};

struct QueueCatalogue {
  Moment now{};
  std::int64_t newest = 0;  ///< the highest id that was drawn
  std::vector<QueueRecord> queues{};
  std::vector<Budget> budgets{};

  const QueueRecord* find_queue(const std::string& name) const;
  const Budget* find_budget(const std::string& name) const;
  /// The names of the budgets that queues share.
  std::vector<std::string> shared_budgets() const;
  /// The queues that share a budget.
  std::vector<std::string> sharers_of(const std::string& budget) const;
};

/// Reads queues and budgets, each ordered by name, in the caller's transaction.
QueueCatalogue read_queues_within(pqxx::transaction_base& transaction);
QueueCatalogue read_queues(Connection& connection);

/// The names of all queues, in order.
std::vector<std::string> queue_names(Connection& connection);

/// Returns the queue. Throws Error(configuration) with the nearest name if there is none.
const QueueRecord& require_queue(const QueueCatalogue& catalogue, const std::string& name);
/// The error for a queue that does not exist; `names` are those that do.
Error unknown_queue(const std::string& name, const std::vector<std::string>& names);

}  // namespace mailroom
