// The process of sink.exec, without knowledge of lines or answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "process/child.hpp"

namespace mailroom::exec {

/// A program that runs, with a pipe to its stdin and one from where it answers.
class ExecChild {
 public:
  /// Throws Error(configuration) if the program cannot be started.
  ExecChild(const std::vector<std::string>& words, config::AckOn ack_on);
  /// Ends it at once, with its process group.
  ~ExecChild();
  ExecChild(const ExecChild&) = delete;
  ExecChild& operator=(const ExecChild&) = delete;

  /// Both do not block.
  int input() const { return input_; }
  int answers() const { return answers_; }
  /// Readable when it has ended.
  int process() const { return child_.process(); }
  /// How much of what was written to its stdin nobody has read.
  std::size_t unread() const;
  /// How it ended, `exited with status 1`; nullopt while it runs.
  std::optional<std::string> ended() { return child_.ended(); }
  void close_input();
  /// Sends the process group a signal.
  void signal(int number) const { child_.signal(number); }

 private:
  int input_ = -1;
  int answers_ = -1;
  process::Child child_;
};

}  // namespace mailroom::exec
