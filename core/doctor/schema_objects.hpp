#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "db/connection.hpp"

namespace mailroom {

/// A table and its columns, separated by spaces.
struct ExpectedTable {
  std::string_view name;
  std::string_view columns;
};

/// An index, and the constraint that creates it (`UNIQUE (email)`); empty for a plain index.
struct ExpectedIndex {
  std::string_view name;
  std::string_view table;
  std::string_view constraint;
};

struct ExpectedTrigger {
  std::string_view name;
  std::string_view table;
  bool is_vital;                 ///< without it tokens are lost or accounts behave incorrectly
  std::string_view consequence;  ///< if it is missing or disabled
};

/// The objects of the newest schema version. A test compares these lists with the migrations.
std::span<const ExpectedTable> expected_tables();
std::span<const ExpectedIndex> expected_indexes();
std::span<const ExpectedTrigger> expected_triggers();
/// By name, from the text of the migrations.
const std::set<std::string>& expected_functions();

/// The objects of the current schema.
struct SchemaObjects {
  struct Index {
    bool is_valid = false;
  };
  struct Function {
    bool is_pinned = false;  ///< independent of the caller's search_path
    std::string pin;         ///< the statement that pins it
  };
  std::map<std::string, std::set<std::string>> tables;  ///< with their columns
  std::map<std::string, Index> indexes;
  std::map<std::string, Function> functions;  ///< without those of extensions
  std::set<std::string> triggers;             ///< without those of constraints
};

SchemaObjects read_schema_objects(Connection& connection);

}  // namespace mailroom
