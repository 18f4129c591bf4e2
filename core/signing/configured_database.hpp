#pragma once

#include <string>

#include "config/settings.hpp"

namespace mailroom {

/// The connection string for a session: database.url, with the password of database.password_file unless it
/// has one. Throws Error(configuration) if it cannot be parsed, or as read_password_file() does.
std::string configured_database(const Settings& settings);

}  // namespace mailroom
