#pragma once

#include <chrono>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace mailroom::bench {

/// What a program cost that has exited.
struct Cost {
  int status = 0;             ///< as in a shell: 128 + signal if it was killed
  double seconds = 0;         ///< from just before the start
  double cpu_seconds = 0;     ///< user and system
  std::int64_t peak_kib = 0;  ///< peak resident memory, sampled every 10 ms
};

/// A timed program with its input and outputs in files. The destructor kills it if it still runs, as does the
/// end of this process.
class Process {
 public:
  struct Setup {
    std::vector<std::string> command;                  ///< the first is a path or is found in PATH
    std::map<std::string, std::string> environment{};  ///< added to this process's own
    std::string directory = "/";                       ///< its working directory
    std::string input = "/dev/null";
    std::string output = "/dev/null";  ///< truncated first
    std::string errors = "/dev/null";  ///< appended to
    int output_fd = -1;                ///< replaces `output` unless negative
    int status = 0;                    ///< the exit status that is also taken for success
  };

  explicit Process(Setup setup);
  ~Process();
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Process& operator=(Process&&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Waits for the program to exit. Throws std::runtime_error, with what the program wrote to `errors`, when
  /// it runs longer than `patience` or its status is neither 0 nor that of Setup.
  Cost wait(std::chrono::seconds patience = std::chrono::seconds(120));

 private:
  [[noreturn]] void fail(const std::string& what) const;

  Setup setup_;
  pid_t pid_ = -1;
  std::chrono::steady_clock::time_point started_;
};

/// VmHWM of a process; 0 when it has exited.
std::int64_t peak_kib_of(pid_t process);

/// User and system time that all threads of a process have used so far, to the nanosecond.
double cpu_seconds_of(pid_t process);

}  // namespace mailroom::bench
