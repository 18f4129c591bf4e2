// Turns the settings of database.* into what a session needs to connect.
#pragma once

#include "config/settings.hpp"
#include "db/database_target.hpp"

namespace mailroom {

/// Where a session connects: database.url, with the password of database.password_file unless it has one, and
/// database.schema. Each session reads the password file again. Throws Error(configuration) if the connection
/// string cannot be parsed, or as read_password_file() does.
DatabaseTarget configured_database(const Settings& settings);

}  // namespace mailroom
