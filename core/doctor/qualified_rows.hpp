#pragma once

#include "db/connection.hpp"

namespace mailroom {

/// Runs `sql`, in which $1 is the current schema, with only pg_catalog on the search_path: the server then
/// writes every other name with its schema, as SQL that is printed needs it.
pqxx::result qualified_rows(Connection& connection, const std::string& sql);

}  // namespace mailroom
