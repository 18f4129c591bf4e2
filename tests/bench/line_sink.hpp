#pragma once

#include <string>
#include <thread>

#include "bench/arrival_times.hpp"

namespace mailroom::bench {

/// Reads a collector's lines from a pipe in its own thread, and notes when each token was read.
class LineSink {
 public:
  explicit LineSink(ArrivalTimes& times);
  ~LineSink();
  LineSink(const LineSink&) = delete;
  LineSink& operator=(const LineSink&) = delete;

  /// The collector's end of the pipe. Call close_input() once the collector has inherited it.
  int input() const { return write_end_; }
  void close_input();

 private:
  void read_lines();
  void note_whole_lines(std::string& bytes);

  ArrivalTimes& times_;
  int read_end_ = -1;
  int write_end_ = -1;
  std::thread reader_;
};

}  // namespace mailroom::bench
