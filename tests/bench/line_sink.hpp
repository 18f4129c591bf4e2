#pragma once

#include <string>
#include <thread>

#include "bench/arrival_times.hpp"

namespace mailroom::bench {

/// Reads a collector's lines from a pipe in its own thread, and notes when each token was read.
class LineSink {
 public:
  /// Notes only tokens of `only_action`, unless it is empty.
  explicit LineSink(ArrivalTimes& times, std::string only_action = {});
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
  std::string only_action_;
  int read_end_ = -1;
  int write_end_ = -1;
  std::thread reader_;
};

}  // namespace mailroom::bench
