#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace mailroom::test {

/// A program that the test started, by its path or found in PATH, with stdout and stderr in files. Killed at
/// the end if it still runs.
class Subprocess {
 public:
  /// Adds `environment` to this process's environment. Appends to the two files.
  Subprocess(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
             const std::string& stdout_path, const std::string& stderr_path);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  void signal(int number) const;
  /// Waits until it has a handler for that signal, or has ended: one that is starting would die of it.
  void await_handler(int number) const;
  /// Waits for the end of the program, and kills it after `patience`. Returns the exit status as a shell
  /// reports it (128 + signal). Throws std::logic_error when called again.
  int wait(std::chrono::seconds patience = std::chrono::seconds(120));
  pid_t pid() const { return pid_; }
  bool has_ended() const;
  /// After SIGSTOP: true once it stands still.
  bool is_stopped() const;

 private:
  pid_t pid_ = -1;
};

/// Whether that process has a handler for that signal.
bool catches(pid_t pid, int number);

std::string read_file(const std::string& path);

/// Checks `condition` every few milliseconds until it is true; returns false after `patience`.
bool eventually(const std::function<bool()>& condition,
                std::chrono::seconds patience = std::chrono::seconds(60));

}  // namespace mailroom::test
