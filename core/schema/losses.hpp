// What going down deletes, so that migrate can show it and ask.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "schema/migration_plan.hpp"

namespace mailroom {

/// Data that a migration deletes: the rows of a table, or some of them, or the values of a column.
struct Loss {
  std::string table;
  std::string column{};     ///< empty: whole rows
  std::string condition{};  ///< `WHERE ...`: only these rows; empty for all
  std::int64_t rows = 0;

  /// `tokens`, `accounts.login`, `jobs WHERE job_type <> 'mailroom'`
  std::string name() const {
    return column.empty() ? table + (condition.empty() ? "" : " " + condition) : table + "." + column;
  }
};

/// What a migration declares to delete, without counts: its lines `-- deletes: table tokens`,
/// `-- deletes: column accounts.login` and `-- deletes: rows tokens WHERE consumed_at IS NULL`.
std::vector<Loss> declared_losses(const std::string& sql);

/// What `steps` will delete, in order, with current counts. Omits missing tables and columns.
std::vector<Loss> count_losses(Connection& connection, const MigrationSteps& steps);

}  // namespace mailroom
