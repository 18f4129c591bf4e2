#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "schema/migration.hpp"

namespace mailroom {

/// Writes `migrations` as N_name.up.sql and N_name.down.sql into `folder`, making it if need be. Files that
/// are there with the same text stay; when one differs, nothing is written. Returns how many files it wrote.
/// Throws Error(failed).
std::size_t export_migrations(const std::vector<Migration>& migrations, const std::filesystem::path& folder);

/// Makes the pair of files of the next version in `folder`, which holds migrations already, with the header
/// that a migration begins with. Returns their paths, up first. Throws Error: usage (the name), failed (the
/// folder).
std::vector<std::filesystem::path> new_migration(const std::filesystem::path& folder,
                                                 const std::string& name);

}  // namespace mailroom
