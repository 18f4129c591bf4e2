#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

namespace mailroom {

/// Bytes to a file descriptor that somebody else owns, unbuffered, so that a failure is seen where it
/// happens.
class Output {
 public:
  explicit Output(int fd) : fd_(fd) {}

  int fd() const { return fd_; }
  bool is_terminal() const;
  /// Columns of the terminal: what it says itself, else COLUMNS, else 80; 40 at least. Nothing where there is
  /// no terminal.
  std::optional<std::size_t> columns() const;
  /// The columns that text is laid out in: the terminal's, or 80 where there is none.
  std::size_t width() const { return columns().value_or(usual_columns); }
  /// Lines of the terminal; 24 where it does not say.
  std::size_t lines() const;

  /// Writes all of `bytes`, in one write(2) where the descriptor takes it so; waits for a slow reader.
  /// Throws Error with ExitCode::output_closed when it cannot.
  void write(std::string_view bytes);
  /// The same in pieces that a pipe takes without waiting, where it is none but a file. `when_slow` is called
  /// once, before it waits for longer than some milliseconds; it must not throw.
  void write(std::string_view bytes, const std::function<void()>& when_slow);

  /// True when it is a pipe or a socket that nobody reads any more.
  bool reader_is_gone() const;
  /// False while a write would have to wait for the reader.
  bool takes_more() const;

  /// True when the descriptor is a regular file and the byte before the next write is no newline: an earlier
  /// writer was killed in mid-line.
  bool is_within_line() const;

 private:
  static constexpr std::size_t usual_columns = 80;

  bool waits_for_reader() const;

  int fd_;
};

}  // namespace mailroom
