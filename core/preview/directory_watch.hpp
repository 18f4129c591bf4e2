// Notices which files of a directory have changed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace mailroom::preview {

/// The files of one directory. Notifications name those to look at; now and then all are looked at, since
/// links, mounts and a directory that is made anew have none.
class DirectoryWatch {
 public:
  explicit DirectoryWatch(std::string directory);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  /// Readable when a file may have changed; -1 where the system has no notifications left.
  int fd() const { return fd_; }

  /// The names of the files that are new, other or gone since the last call. Of a directory that cannot be
  /// read, all are gone; error() says why.
  std::vector<std::string> changes();
  const std::string& error() const { return error_; }
  /// True if the file was there at the last call of changes().
  bool has(const std::string& name) const { return known_.count(name) > 0; }

 private:
  /// What differs between two versions of a file.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t modified = 0;
    std::int64_t changed = 0;

    bool operator==(const Stamp&) const = default;
  };

  /// The names in notifications; nullopt if all files must be looked at.
  std::optional<std::set<std::string>> take_notified();
  std::vector<std::string> look_at_all();
  std::optional<Stamp> look_at(int directory, const std::string& name) const;

  std::string directory_;
  int fd_;
  int watch_ = -1;
  TimePoint all_seen_{};  ///< when all files were looked at
  std::map<std::string, Stamp> known_;
  std::string error_;
};

}  // namespace mailroom::preview
