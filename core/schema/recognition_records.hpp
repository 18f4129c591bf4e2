#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom {

/// The record that another tool keeps of its migrations.
struct ForeignRecord {
  std::string table;
  std::string tool;  ///< `dbmate`; empty if the table tells nothing
};

/// Whose a table schema_migrations with these columns (`version character varying(128)`) probably is, or an
/// empty text. `has_rails_metadata`: there is a table ar_internal_metadata.
std::string probable_keeper(const std::vector<std::string>& columns, bool has_rails_metadata);

/// Throws Error(schema) if the table schema_migrations of the current schema is not as golang-migrate and
/// mailroom keep it: says whose it probably is, and what to do. There has to be such a table.
void require_own_record(Connection& connection);

/// The table beside ours in which a tool for SQL files keeps its record, if there is one.
std::optional<ForeignRecord> find_foreign_record(Connection& connection);

/// What to do where a name that mailroom needs is taken.
std::string advice_of_own_schema();

}  // namespace mailroom
