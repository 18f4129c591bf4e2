// All that a command needs to open one more session of its database.
#pragma once

#include <string>
#include <utility>

namespace mailroom {

/// Where a session connects, and in which schema it works.
struct DatabaseTarget {
  DatabaseTarget() = default;
  // Not explicit: a connection string alone is a target.
  DatabaseTarget(std::string conninfo_, std::string schema_ = {})
      : conninfo(std::move(conninfo_)), schema(std::move(schema_)) {}
  DatabaseTarget(const char* conninfo_) : conninfo(conninfo_) {}

  std::string conninfo;         ///< a URI or a keyword=value list of libpq
  std::string schema;           ///< empty: the first schema of the role's search_path
  std::string password_file{};  ///< read for each session, unless `conninfo` has a password; may be empty
  bool allow_readable_file = false;

  bool operator==(const DatabaseTarget&) const = default;
};

}  // namespace mailroom
