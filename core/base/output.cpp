// write(2) and its traps: partial writes, inherited O_NONBLOCK, and lines that a killed process began.

#include "base/output.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr int slow_after_ms = 5;

[[noreturn]] void throw_closed(int error) {
  const auto message = fmt::format("cannot write to the output: {}", std::strerror(error));
  if (error == EPIPE) throw ReaderGone(message);
  throw Error(ExitCode::output_closed, message);
}

/// A write to a descriptor inherited in non-blocking mode fails with EAGAIN instead of waiting.
void wait_until_writable(int fd) {
  pollfd waiting{fd, POLLOUT, 0};
  if (poll(&waiting, 1, -1) < 0 && errno != EINTR) throw_closed(errno);
}

/// The offset at which the next write to a regular file begins.
off_t next_offset(int fd, const struct stat& file) {
  const int flags = fcntl(fd, F_GETFL);
  const off_t position = lseek(fd, 0, SEEK_CUR);
  return flags >= 0 && (flags & O_APPEND) != 0 ? file.st_size : position;
}

}  // namespace

bool Output::is_terminal() const {
  return isatty(fd_) == 1;
}

std::optional<std::size_t> Output::columns() const {
  constexpr std::size_t fewest = 40;  // a narrower layout is unreadable
  if (!is_terminal()) return std::nullopt;
  winsize size{};
  if (ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max<std::size_t>(size.ws_col, fewest);
  const char* variable = std::getenv("COLUMNS");
  const auto given = parse_number<std::size_t>(variable == nullptr ? "" : variable).value_or(0);
  return std::max(given > 0 && given < 10'000 ? given : usual_columns, fewest);
}

std::size_t Output::lines() const {
  winsize size{};
  return ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

void Output::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = ::write(fd_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      wait_until_writable(fd_);
    } else if (errno != EINTR) {
      throw_closed(errno);
    }
  }
}

void Output::write(std::string_view bytes, const std::function<void()>& when_slow) {
  const bool watched = when_slow && waits_for_reader();
  while (watched && !bytes.empty()) {
    pollfd end{fd_, POLLOUT, 0};
    const int ready = poll(&end, 1, slow_after_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) when_slow();
    if (ready <= 0) break;
    // If poll(2) reports POLLOUT, a pipe takes PIPE_BUF bytes without blocking.
    const auto piece = bytes.substr(0, PIPE_BUF);
    write(piece);
    bytes.remove_prefix(piece.size());
  }
  write(bytes);
}

bool Output::waits_for_reader() const {
  struct stat file {};
  return fstat(fd_, &file) == 0 && !S_ISREG(file.st_mode);
}

bool Output::takes_more() const {
  pollfd end{fd_, POLLOUT, 0};
  return poll(&end, 1, 0) != 0;
}

bool Output::is_within_line() const {
  struct stat file {};
  if (fstat(fd_, &file) != 0 || !S_ISREG(file.st_mode)) return false;
  const off_t offset = next_offset(fd_, file);
  if (offset <= 0 || offset > file.st_size) return false;
  // The shell opened the file for writing only, so open it again for reading.
  const int reader = open(fmt::format("/proc/self/fd/{}", fd_).c_str(), O_RDONLY | O_CLOEXEC);
  if (reader < 0) return false;
  char last = '\n';
  const bool read = pread(reader, &last, 1, offset - 1) == 1;
  close(reader);
  return read && last != '\n';
}

}  // namespace mailroom
