// Finds mailroom's tables in other schemas, where a wrong search_path misses them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::schema {

/// A schema of the database that holds mailroom's tables, of any version.
struct SchemaPlace {
  std::string name;
  bool is_usable = false;  ///< the role has USAGE on it
  bool is_on_path = false;
  std::string grant;  ///< the statement that gives the role USAGE
};

/// The schemas other than the current one with mailroom's tables, by name; those that the role may use first.
std::vector<SchemaPlace> other_places(db::Connection& connection);

/// True if the current schema holds mailroom's tables, of any version.
bool is_place(db::Connection& connection);

/// What to say when the current schema lacks the tables that `places`, which are not empty, hold: a message,
/// and the command or statement that helps.
Error elsewhere(db::Connection& connection, const std::vector<SchemaPlace>& places);

/// Throws elsewhere() if the current schema lacks mailroom's tables, and another one of the database has
/// them; or Error(schema) if the role may use no schema of its search_path.
void refuse_wrong_schema(db::Connection& connection);

/// The place that `migrate` must name when it begins in an empty schema: mailroom's
/// tables are in another schema, and nobody chose this one for the session, or they are on its search_path
/// too. Null if it may begin.
std::optional<SchemaPlace> passed_over(db::Connection& connection);

/// The tables and views of others in the current schema, by name, if nobody named it as mailroom's: their
/// owners may have given roles or tools all that is in it.
std::vector<std::string> neighbours(db::Connection& connection);

}  // namespace mailroom::schema
