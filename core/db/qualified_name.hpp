// Puts the schema into statements that an operator will run elsewhere.
#pragma once

#include <string>

#include "db/connection.hpp"

namespace mailroom {

// SQL that is printed names each object with its schema, since the session that runs it has another
// search_path.

/// The current schema, quoted where needed.
std::string quoted_schema(Connection& connection);

/// `name`, of an object that mailroom created in the current schema, with that schema.
std::string qualified_name(Connection& connection, const std::string& name);

/// `statement` with `schema`, quoted where needed, in each place of the mark `@.`.
std::string in_schema(std::string statement, const std::string& schema);

}  // namespace mailroom
