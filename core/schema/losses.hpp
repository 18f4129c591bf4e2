#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"
#include "schema/migration_plan.hpp"

namespace mailroom {

/// Data that a migration deletes: the rows of a table or the values of a column.
struct Loss {
  std::string table;
  std::string column{};  ///< empty: whole rows
  std::int64_t rows = 0;

  /// `tokens`, `accounts.login`
  std::string name() const { return column.empty() ? table : table + "." + column; }
};

/// What a migration declares to delete, without counts: its lines `-- deletes: table tokens` and
/// `-- deletes: column accounts.login`.
std::vector<Loss> declared_losses(const std::string& sql);

/// What `steps` will delete, in order, with current counts. Omits missing tables and columns.
std::vector<Loss> count_losses(Connection& connection, const MigrationSteps& steps);

}  // namespace mailroom
