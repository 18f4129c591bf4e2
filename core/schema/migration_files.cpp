#include "schema/migration_files.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.hpp"

namespace mailroom {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    throw Error(ExitCode::failed, fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  }
}

void make_directory(const fs::path& directory) {
  std::error_code failure;
  fs::create_directories(directory, failure);
  if (failure || !fs::is_directory(directory, failure)) {
    throw Error(ExitCode::failed, fmt::format("cannot make the directory {}{}{}", directory.string(),
                                              failure ? ": " : "", failure ? failure.message() : ""));
  }
}

/// N of `N_name.up.sql`; nullopt if the file is not a migration.
std::optional<int> version_of(const fs::path& path) {
  const auto name = path.filename().string();
  int version = 0;
  const auto [rest, failure] = std::from_chars(name.data(), name.data() + name.size(), version);
  const bool is_migration = failure == std::errc() && *rest == '_' && path.extension() == ".sql";
  return is_migration ? std::optional(version) : std::nullopt;
}

int next_version(const fs::path& directory) {
  std::error_code failure;
  int newest = -1;
  for (const auto& entry : fs::directory_iterator(directory, failure))
    newest = std::max(newest, version_of(entry.path()).value_or(-1));
  if (newest >= 0) return newest + 1;
  throw Error(ExitCode::failed, fmt::format("there are no migrations in {}", directory.string()),
              "run it in the source tree of mailroom, or name the directory with --dir");
}

}  // namespace

std::size_t export_migrations(const std::vector<Migration>& migrations, const fs::path& directory) {
  std::vector<std::pair<fs::path, std::string>> missing;
  for (const auto& migration : migrations) {
    for (const auto direction : {Direction::up, Direction::down}) {
      const MigrationStep step{&migration, direction};
      const auto path = directory / step.file();
      const auto present = text_of(path);
      if (present && *present != step.text()) {
        throw Error(ExitCode::failed,
                    fmt::format("{} exists with other content; nothing was written", path.string()),
                    "export into an empty directory, and compare the two with diff -r");
      }
      if (!present) missing.emplace_back(path, step.text());
    }
  }
  make_directory(directory);
  for (const auto& [path, text] : missing)
    write(path, text);
  return missing.size();
}

std::vector<fs::path> new_migration(const fs::path& directory, const std::string& name) {
  const auto is_fit = [](unsigned char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_fit)) {
    throw Error(ExitCode::usage, fmt::format("'{}' is not a valid migration name", name),
                "use lower-case letters, digits and underscores: add_locale");
  }
  const auto stem = fmt::format("{}_{}", next_version(directory), name);
  const auto up = directory / (stem + ".up.sql");
  const auto down = directory / (stem + ".down.sql");
  write(up,
        "-- What it changes, and why.\n--\n-- Which locks it takes, for how long, and what it rewrites: "
        "\"rewrites no table\".\n-- A file with a single CREATE INDEX CONCURRENTLY IF NOT EXISTS runs "
        "outside a transaction.\n\n");
  write(down,
        "-- What it removes, and which data is lost.\n--\n-- Which locks it takes, and what it rewrites.\n"
        "--\n-- Each table and column that it drops: \"-- deletes: table NAME\", \"-- deletes: column "
        "TABLE.NAME\".\n\n");
  return {up, down};
}

}  // namespace mailroom
