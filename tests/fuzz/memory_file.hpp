#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/fuzz.hpp"

namespace mailroom::fuzz {

/// A file without a disk, of mode 0600. Any failure ends the run.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    require(fd_ >= 0 && fchmod(fd_, 0600) == 0, "a file in memory can be made");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  void empty() { require(ftruncate(fd_, 0) == 0 && lseek(fd_, 0, SEEK_SET) == 0, "a file can be emptied"); }

  void fill(std::string_view text) {
    empty();
    const auto written = write(fd_, text.data(), text.size());
    require(written == static_cast<ssize_t>(text.size()), "a file can be written");
  }

  std::string text() const {
    struct stat status {};
    require(fstat(fd_, &status) == 0, "a file has a size");
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    require(pread(fd_, text.data(), text.size(), 0) == status.st_size, "a file can be read");
    return text;
  }

 private:
  int fd_;
};

}  // namespace mailroom::fuzz
