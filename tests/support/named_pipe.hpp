#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temporary_directory.hpp"

namespace mailroom::test {

/// A pipe with a name, and its reader.
class NamedPipe {
 public:
  NamedPipe() : path_(directory_.path() / "pipe") {
    if (mkfifo(path_.c_str(), 0600) != 0) throw std::runtime_error("cannot make a pipe");
    reader_ = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~NamedPipe() { leave(); }
  NamedPipe(const NamedPipe&) = delete;
  NamedPipe& operator=(const NamedPipe&) = delete;

  const std::string& path() const { return path_; }
  /// Reads what the pipe contains, at most `most` bytes.
  std::string take(std::size_t most) const {
    std::string bytes(most, '\0');
    const auto count = read(reader_, bytes.data(), bytes.size());
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }
  /// True if the pipe is full, so that a writer blocks. A byte count cannot show it, because lines fill pages
  /// only in part.
  bool is_full() const {
    const int writer = open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (writer < 0) return false;
    pollfd asked{writer, POLLOUT, 0};
    const bool full = poll(&asked, 1, 0) == 0;
    close(writer);
    return full;
  }
  void leave() {
    if (reader_ >= 0) close(reader_);
    reader_ = -1;
  }

 private:
  TemporaryDirectory directory_;
  std::string path_;
  int reader_ = -1;
};

}  // namespace mailroom::test
