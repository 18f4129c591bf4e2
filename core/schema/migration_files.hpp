// Gives the embedded migrations out as files, for review or for golang-migrate.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "schema/function_set.hpp"

namespace mailroom::schema {

struct ExportedFile {
  std::string name;
  std::string text;
};

/// `migrations` as N_name.up.sql and N_name.down.sql, for golang-migrate: it runs each file as one
/// transaction, and knows versions only. The functions therefore are also a version: the newest file makes
/// them after its own statements, and its down file drops them first. A newest version that must run outside
/// a transaction would not allow that; a test refuses one. functions.sql makes them alone, for psql.
std::vector<ExportedFile> exported_files(const std::vector<Migration>& migrations,
                                         const Migration& functions);

/// Writes `files` into `directory`, which it creates if needed. Keeps existing files with the same text; if
/// one differs, writes nothing. Returns the number of files written. Throws Error(failed).
std::size_t write_files(const std::vector<ExportedFile>& files, const std::filesystem::path& directory);

}  // namespace mailroom::schema
