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

/// An index, and the constraint that makes it (`UNIQUE (email)`) where it is not made by itself.
struct ExpectedIndex {
  std::string_view name;
  std::string_view table;
  std::string_view constraint;
};

struct ExpectedTrigger {
  std::string_view name;
  std::string_view table;
  bool is_vital;                 ///< without it tokens are lost or accounts do not live as they should
  std::string_view consequence;  ///< of its absence
};

/// What the schema of the newest version has. A test holds these lists in step with the migrations.
std::span<const ExpectedTable> expected_tables();
std::span<const ExpectedIndex> expected_indexes();
std::span<const ExpectedTrigger> expected_triggers();
std::span<const std::string_view> expected_functions();

/// What a schema has: the first of the search_path that can be used.
struct SchemaObjects {
  struct Index {
    bool is_valid = false;
  };
  struct Function {
    bool is_pinned = false;  ///< no search_path of a caller matters to it
    std::string pin;         ///< the statement that makes it so
  };
  std::map<std::string, std::set<std::string>> tables;  ///< with their columns
  std::map<std::string, Index> indexes;
  std::map<std::string, Function> functions;  ///< without those of extensions
  std::set<std::string> triggers;             ///< without those of constraints
};

SchemaObjects read_schema_objects(Connection& connection);

}  // namespace mailroom
