#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom {

/// Another tool's record of its migrations.
struct ForeignRecord {
  std::string table;
  std::string tool;  ///< `goose`, `Flyway`
};

/// The tool that probably owns a table schema_migrations with these columns (`version character
/// varying(128)`), or an empty text. `has_rails_metadata`: there is a table ar_internal_metadata.
std::string probable_keeper(const std::vector<std::string>& columns, bool has_rails_metadata);

/// Throws Error(schema), naming the tool that probably owns it, unless the table schema_migrations of the
/// current schema has the columns of golang-migrate and mailroom. The table must exist.
void require_own_record(Connection& connection);

/// The table of the current schema in which another migration tool keeps its record, if there is one.
std::optional<ForeignRecord> find_foreign_record(Connection& connection);

/// The hint if a name that mailroom needs is taken.
std::string advice_of_own_schema();

}  // namespace mailroom
