// Where results go, mostly stdout: its width, its last line, and a reader that may be slow or gone.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

namespace mailroom {

/// Unbuffered writes to a file descriptor that the caller owns; an error surfaces at the write that causes
/// it.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  bool is_terminal() const;
  /// Columns of the terminal: as the terminal reports, else COLUMNS, else 80; at least 40. Returns nullopt
  /// if the descriptor is not a terminal.
  std::optional<std::size_t> columns() const;
  /// The width for laying out text: columns(), or 80 without a terminal.
  std::size_t width() const { return columns().value_or(usual_columns); }
  /// Lines of the terminal; 24 if unknown.
  std::size_t lines() const;

  /// Writes all of `bytes`, in one write(2) if the descriptor accepts them at once; waits for a slow reader.
  /// Throws Error(output_closed) if the write fails, ReaderGone if nobody reads any more.
  void write(std::string_view bytes);
  /// As write(bytes). Unless the descriptor is a regular file, writes in pieces that a pipe takes without
  /// blocking, and calls `when_slow` once before it waits longer than 5 ms; `when_slow` must not throw.
  void write(std::string_view bytes, const std::function<void()>& when_slow);

  /// False if a write would block.
  bool takes_more() const;

  /// True if the descriptor is a regular file and the byte before the next write is not a newline: an earlier
  /// writer was killed in the middle of a line.
  bool is_within_line() const;

 private:
  static constexpr std::size_t usual_columns = 80;

  bool waits_for_reader() const;

  int fd_;
};

}  // namespace mailroom
