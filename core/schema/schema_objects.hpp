// What a sound schema has, and the statement that restores each part of it; which tables row security hides
// rows of.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "db/connection.hpp"
#include "schema/catalogue.hpp"
#include "schema/migration.hpp"

namespace mailroom::schema {

/// The tables that the migrations create, and those in which mailroom records them.
const std::vector<std::string>& mailroom_tables();
/// The tables that a consumer reads after it has found the version.
const std::vector<std::string>& tables_of_consumers();
/// Those that a consumer without a sink that has outcomes reads.
const std::vector<std::string>& tables_of_claims();

/// The functions that exist after the newest version, by name.
const std::vector<std::string>& mailroom_functions();

/// The tables with rows that row security hides from this session's user, and the statements that fix it.
struct HiddenRows {
  std::string tables;      ///< their names, empty if there are none
  std::string fix;         ///< for a superuser
  std::string owners_fix;  ///< for the owner of the tables; empty if it is long
};
HiddenRows hidden_rows(db::Connection& connection, const std::vector<std::string>& tables);

/// Throws Error(failed) if row security hides rows of the tables that a command reads, because results would
/// be incomplete.
void require_all_rows(db::Connection& connection, const std::vector<std::string>& tables = mailroom_tables());

/// An object that migrations create.
struct ExpectedObject {
  std::string table{};  ///< of a column, constraint or index
  std::string
      migration{};  ///< the last one that creates it: `0_init`; of a function its file: `functions/claim.sql`
  /// Creates a constraint, index or trigger again, on one line; an index with CONCURRENTLY, so that it blocks
  /// no writers. For in_schema().
  std::string statement{};
};

/// Tables, columns (`tokens.id`), constraints with an index, indexes, triggers, and functions by name.
using ExpectedObjects = std::map<CatalogueKey, ExpectedObject>;

/// What `migrations` create, from their text. A test compares it with a database.
ExpectedObjects read_expected_objects(const std::vector<Migration>& migrations);

/// What the embedded migrations and functions create.
const ExpectedObjects& expected_objects();

struct ExpectedTrigger {
  std::string_view name;
  std::string_view table;
  bool is_vital;                 ///< without it tokens are lost or accounts behave incorrectly
  std::string_view consequence;  ///< if it is missing or disabled
};

/// The triggers of the newest schema version. A test compares this list with the migrations.
std::span<const ExpectedTrigger> expected_triggers();

}  // namespace mailroom::schema
