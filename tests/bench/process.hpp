#pragma once

#include <chrono>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace mailroom::bench {

/// What a program cost that ran to its end.
struct Cost {
  int status = 0;             ///< as a shell tells it: 128 + signal for one that was killed
  double seconds = 0;         ///< from just before it was started
  double cpu_seconds = 0;     ///< user and system
  std::int64_t peak_kib = 0;  ///< resident memory at its highest, looked at every 10 ms
};

/// A program with its input and outputs in files, timed. Killed at the end if it still runs, and when this
/// process ends.
class Process {
 public:
  struct Setup {
    std::vector<std::string> command;                  ///< the first is a path, or is looked for in PATH
    std::map<std::string, std::string> environment{};  ///< on top of this process's own
    std::string folder = "/";                          ///< where it works
    std::string input = "/dev/null";
    std::string output = "/dev/null";  ///< truncated first
    std::string errors = "/dev/null";  ///< appended to
    int output_fd = -1;                ///< instead of `output`, where it is not negative
  };

  explicit Process(Setup setup);
  ~Process();
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Process& operator=(Process&&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Waits for its end. Throws std::runtime_error, with what it wrote to `errors`, when that takes longer
  /// than `patience` or when its status is not 0.
  Cost wait(std::chrono::seconds patience = std::chrono::seconds(120));

 private:
  [[noreturn]] void fail(const std::string& what) const;

  Setup setup_;
  pid_t pid_ = -1;
  std::chrono::steady_clock::time_point started_;
};

/// VmHWM of a process; 0 when it has gone.
std::int64_t peak_kib_of(pid_t process);

/// User and system time that a process of one thread has taken so far, to the nanosecond.
double cpu_seconds_of(pid_t process);

}  // namespace mailroom::bench
