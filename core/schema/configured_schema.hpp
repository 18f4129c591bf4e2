// The schema of database.schema: whether it is there, and its creation.
#pragma once

#include <string>

#include "db/connection.hpp"

namespace mailroom::schema {

/// The hint if a name that mailroom needs is taken.
std::string advice_of_own_schema();

/// Throws Error(schema) if the configured schema does not exist or the role may not use it.
void require_configured_schema(db::Connection& connection);

/// Creates the configured schema if it does not exist, for what is run next in this session. Default
/// privileges give nobody a right on it.
void create_configured_schema(db::Connection& connection);

}  // namespace mailroom::schema
