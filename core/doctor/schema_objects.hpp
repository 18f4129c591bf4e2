#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schema/migration.hpp"

namespace mailroom {

struct ExpectedTable {
  std::string name;
  std::string migration;  ///< that creates it: `0_init`
  std::vector<std::string> columns;
};

struct ExpectedIndex {
  std::string name;
  std::string table;
  bool is_constraint = false;
  std::string statement;  ///< that creates it, with CONCURRENTLY where possible so that it blocks no writers
};

/// What migrations create, from their text. A test compares it with a database.
struct ExpectedObjects {
  std::vector<ExpectedTable> tables;
  std::vector<ExpectedIndex> indexes;
  std::map<std::string, std::string> functions;  ///< with the last migration that creates each
  std::map<std::string, std::string> triggers;   ///< with the last statement that creates each, on one line
};

ExpectedObjects read_expected_objects(const std::vector<Migration>& migrations);

/// What the embedded migrations create.
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
