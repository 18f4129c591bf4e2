#pragma once

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace mailroom::test {

/// The log entries of the server that scripts/with-postgres started, since this object was created.
class ServerLog {
 public:
  ServerLog() : path_(path()), from_(size()) {}

  /// The entries of one backend, each with all its lines.
  std::vector<std::string> entries_of(int pid) const {
    std::ifstream file(path_);
    file.seekg(from_);
    const auto mark = "[" + std::to_string(pid) + "] ";
    std::vector<std::string> entries;
    bool is_ours = false;
    for (std::string line; std::getline(file, line);) {
      // The first line of an entry begins with the year, its other lines with a tab.
      if (!line.starts_with('\t')) {
        is_ours = line.find(mark) != std::string::npos;
        if (is_ours) entries.emplace_back();
      }
      if (is_ours) entries.back() += line + "\n";
    }
    return entries;
  }

 private:
  static std::string path() {
    const char* directory = std::getenv("PGHOST");
    if (directory == nullptr) throw std::runtime_error("run the test through scripts/with-postgres");
    return std::string(directory) + "/server.log";
  }
  std::streamoff size() const {
    std::ifstream file(path_, std::ios::ate);
    if (!file) throw std::runtime_error("the server has no log at " + path_);
    return file.tellg();
  }

  std::string path_;
  std::streamoff from_;
};

}  // namespace mailroom::test
