#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <sys/types.h>
#include <vector>

#include "transcript.hpp"

namespace mailroom::golden {

/// Runs shell commands in one directory with one environment, and ends what they leave running.
class Shell {
 public:
  /// `environment` is the whole of it, as NAME=VALUE.
  Shell(std::filesystem::path directory, std::vector<std::string> environment);
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// Runs `command` with /bin/sh -c, without stdin and without a terminal, in a session of its own.
  /// A status above 128 is 128 and the signal that ended it. After `limit` everything in its session is
  /// killed, and stderr says so. What it left in the background goes on until end_background().
  Result run(const std::string& command, std::chrono::milliseconds limit);

  /// Kills what earlier commands left running.
  void end_background();

 private:
  std::filesystem::path directory_;
  std::vector<std::string> environment_;
  std::vector<pid_t> groups_;
};

}  // namespace mailroom::golden
