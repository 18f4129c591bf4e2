#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "db/connection.hpp"
#include "schema/migration_plan.hpp"

namespace mailroom {

/// Rows that a migration deletes: those of a table, or the values of a column.
struct Loss {
  std::string table;
  std::string column{};  ///< empty: whole rows
  std::int64_t rows = 0;

  /// `tokens`, `accounts.login`
  std::string name() const { return column.empty() ? table : table + "." + column; }
};

/// What the text of a migration drops, truncates or deletes, not counted yet.
std::vector<Loss> deletions_in(std::string_view sql);

/// What `steps` will delete, in their order, counted now; a table that is not there is left out.
std::vector<Loss> count_losses(Connection& connection, const MigrationSteps& steps);

}  // namespace mailroom
