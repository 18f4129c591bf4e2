// A program that is started: how it is set up, watched and ended, whatever it is for.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace mailroom::process {

/// A pipe whose ends close with it, and with another program.
class Pipe {
 public:
  /// Throws Error(failed).
  Pipe();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  /// One end, which is the caller's from now on.
  int take_reader();
  int take_writer();

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// What becomes descriptor `number` of a child: `ours`.
struct ChildDescriptor {
  int number = 0;
  int ours = 0;
};

/// A program in a process group of its own, with the default signals. It has stdin, stdout and stderr, and of
/// our other descriptors only those that it is given; none of the variables that may hold our secrets, and
/// none by which the service manager knows us.
class Child {
 public:
  Child() = default;
  /// Ends it.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Starts `words`, found in PATH, once. Returns 0, or the errno of what is in the way.
  int start(std::vector<std::string> words, const std::vector<ChildDescriptor>& descriptors);

  /// A pidfd, readable when it has ended.
  int process() const { return process_; }
  /// How it ended, `exited with status 1`; nullopt while it runs. What it has left behind is killed.
  std::optional<std::string> ended();
  /// Waits for that.
  std::string wait();
  /// True if it has ended, with status 0.
  bool has_succeeded() const { return status_ == 0; }
  /// Kills what runs still, with all that it has started.
  void end();
  /// Sends the process group a signal.
  void signal(int number) const;

 private:
  std::optional<std::string> reap(int options);

  pid_t pid_ = -1;
  int process_ = -1;
  std::optional<int> status_{};  ///< as waitpid() says it
};

}  // namespace mailroom::process
