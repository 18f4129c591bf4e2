#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <string_view>

namespace mailroom::test {

/// A folder of its own for one test, which goes with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mailroom-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file, making its folders, and gives its path.
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

/// A temporary folder that is the working directory as long as it lives.
class WorkingFolder : public TemporaryFolder {
 public:
  WorkingFolder() : previous_(std::filesystem::current_path()) { std::filesystem::current_path(path()); }
  ~WorkingFolder() {
    std::error_code ignored;
    std::filesystem::current_path(previous_, ignored);
  }

 private:
  std::filesystem::path previous_;
};

}  // namespace mailroom::test
