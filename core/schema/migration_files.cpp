// Compares all files before it writes the first one.

#include "schema/migration_files.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.hpp"

namespace mailroom::schema {
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

}  // namespace

std::vector<ExportedFile> exported_files(const std::vector<Migration>& migrations,
                                         const Migration& functions) {
  std::vector<ExportedFile> files;
  for (const auto& migration : migrations) {
    files.push_back({migration.title() + ".up.sql", migration.up});
    files.push_back({migration.title() + ".down.sql", migration.down});
  }
  auto& up = files[files.size() - 2].text;
  auto& down = files.back().text;
  up += "\n" + functions.up;
  down = functions.down + "\n" + down;
  files.push_back({functions.title() + ".sql", functions.up});
  return files;
}

std::size_t write_files(const std::vector<ExportedFile>& files, const fs::path& directory) {
  std::vector<std::pair<fs::path, std::string>> missing;
  for (const auto& file : files) {
    const auto path = directory / file.name;
    const auto present = text_of(path);
    if (present && *present != file.text) {
      throw Error(ExitCode::failed,
                  fmt::format("{} exists with other content; nothing was written", path.string()),
                  "export into an empty directory, and compare the two with diff -r");
    }
    if (!present) missing.emplace_back(path, file.text);
  }
  make_directory(directory);
  for (const auto& [path, text] : missing)
    write(path, text);
  return missing.size();
}

}  // namespace mailroom::schema
