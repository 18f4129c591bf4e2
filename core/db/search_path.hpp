// The schema of a session: notices a wrong one, as when a pooler drops options, and puts it into statements
// for elsewhere.
#pragma once

#include <optional>
#include <string>

#include "db/connection.hpp"

namespace mailroom::db {

/// The search_path that libpq's `options` set (`-csearch_path=a,b`, `-c search_path=a`, `--search_path=a`,
/// with a backslash before a blank); nullopt if they set none.
std::optional<std::string> search_path_in(const std::string& options);

/// Throws Error(configuration) if the options of `conninfo`, or PGOPTIONS, set a search_path that did not
/// arrive: a pooler drops them, and the session would work in another schema.
void require_search_path(Connection& connection, const std::string& conninfo);

// SQL that is printed names each object with its schema, since the session that runs it has another
// search_path.

/// The current schema, quoted where needed.
std::string quoted_schema(Connection& connection);

/// `name`, of an object that mailroom created in the current schema, with that schema.
std::string qualified_name(Connection& connection, const std::string& name);

/// `statement` with `schema`, quoted where needed, in each place of the mark `@.`.
std::string in_schema(std::string statement, const std::string& schema);

}  // namespace mailroom::db
