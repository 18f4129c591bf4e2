// Gives the embedded migrations out as files, for review or for golang-migrate.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "schema/migration_plan.hpp"

namespace mailroom {

/// Writes `migrations` as N_name.up.sql and N_name.down.sql into `directory`, which it creates if needed.
/// Keeps existing files with the same text; if one differs, writes nothing. Returns the number of files
/// written. Throws Error(failed).
std::size_t export_migrations(const std::vector<Migration>& migrations,
                              const std::filesystem::path& directory);

}  // namespace mailroom
