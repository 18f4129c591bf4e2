#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <string_view>

namespace mailroom::test {

/// A temporary directory for one test; the destructor removes it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mailroom-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file, creates its directories, and returns its path.
  std::string write(const std::filesystem::path& name, std::string_view text, unsigned mode = 0600) const {
    const auto path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path.string());
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
    return path.string();
  }

 private:
  std::filesystem::path path_;
};

/// A temporary directory that is the working directory during its lifetime.
class WorkingDirectory : public TemporaryDirectory {
 public:
  WorkingDirectory() : previous_(std::filesystem::current_path()) { std::filesystem::current_path(path()); }
  ~WorkingDirectory() {
    std::error_code ignored;
    std::filesystem::current_path(previous_, ignored);
  }

 private:
  std::filesystem::path previous_;
};

}  // namespace mailroom::test
