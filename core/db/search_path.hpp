// Notices that a session would work in the wrong schema, as when a pooler drops its options.
#pragma once

#include <optional>
#include <string>

#include "db/connection.hpp"

namespace mailroom {

/// The search_path that libpq's `options` set (`-csearch_path=a,b`, `-c search_path=a`, `--search_path=a`,
/// with a backslash before a blank); nullopt if they set none.
std::optional<std::string> search_path_in(const std::string& options);

/// Throws Error(configuration) if the options of `conninfo`, or PGOPTIONS, set a search_path that did not
/// arrive: a pooler drops them, and the session would work in another schema.
void require_search_path(Connection& connection, const std::string& conninfo);

}  // namespace mailroom
