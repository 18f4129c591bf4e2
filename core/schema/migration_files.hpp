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

/// Creates the two files of the next version in `directory`, which has migrations already, with the usual
/// header. Returns their paths, up first. Throws Error(usage) for an invalid name, Error(failed) for the
/// directory.
std::vector<std::filesystem::path> new_migration(const std::filesystem::path& directory,
                                                 const std::string& name);

}  // namespace mailroom
