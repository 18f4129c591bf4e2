#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace mailroom::bench {

/// Reads a collector's lines from a pipe in its own thread, and records when the token of each account was
/// read.
class LineSink {
 public:
  /// For accounts 1 to `accounts`.
  explicit LineSink(std::int64_t accounts);
  ~LineSink();
  LineSink(const LineSink&) = delete;
  LineSink& operator=(const LineSink&) = delete;

  /// The collector's end of the pipe. Call close_input() once the collector has inherited it.
  int input() const { return write_end_; }
  void close_input();

  /// Waits until a token of `account` has been read; false after 10 s.
  bool wait_for(std::int64_t account);
  /// Waits until `count` tokens have been read; false after 10 s.
  bool wait_for_count(std::int64_t count);
  /// When the account's token was read, in microseconds since 1970; 0 for none. Call only after the last
  /// wait.
  std::int64_t came_at(std::int64_t account) const { return came_at_.at(static_cast<std::size_t>(account)); }

 private:
  void read_lines();
  void note_whole_lines(std::string& bytes);

  std::vector<std::int64_t> came_at_;
  std::int64_t count_ = 0;
  std::mutex lock_;
  std::condition_variable changed_;
  int read_end_ = -1;
  int write_end_ = -1;
  std::thread reader_;
};

}  // namespace mailroom::bench
