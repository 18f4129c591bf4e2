// What a sound schema has, and the statement that restores each part of it.
#pragma once

#include <map>
#include <span>
#include <string_view>

#include "schema/catalogue.hpp"
#include "schema/migration.hpp"

namespace mailroom {

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

}  // namespace mailroom
