// The pipes of the program, and why it cannot be started.

#include "carriers/exec/child.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace mailroom::exec {
namespace {

constexpr int ack_descriptor = 3;

std::string hint_for_start(const std::string& program, int failure) {
  const bool is_path = program.find('/') != std::string::npos;
  struct stat status {};
  const bool exists = is_path && stat(program.c_str(), &status) == 0;
  if (exists && S_ISREG(status.st_mode)) {
    if (failure == EACCES) return "let this user read and execute it, for example with chmod +x";
    if (failure == ENOENT || failure == ENOEXEC)
      return "a script needs a first line such as #!/usr/bin/python3, with an interpreter that exists";
  }
  return "sink.exec names a program, by its path or found in PATH, and its arguments";
}

int without_blocking(int descriptor) {
  fcntl(descriptor, F_SETFL, O_NONBLOCK);
  return descriptor;
}

}  // namespace

ExecChild::ExecChild(const std::vector<std::string>& words, config::AckOn ack_on) {
  process::Pipe input;
  process::Pipe answers;
  const int answering = ack_on == config::AckOn::stdout ? STDOUT_FILENO : ack_descriptor;
  const int failure = child_.start(words, {{STDIN_FILENO, input.reader()}, {answering, answers.writer()}});
  if (failure != 0) {
    throw Error(ExitCode::configuration,
                fmt::format("cannot start {}: {}", shown_text(words.front()), std::strerror(failure)),
                hint_for_start(words.front(), failure));
  }
  input_ = without_blocking(input.take_writer());
  answers_ = without_blocking(answers.take_reader());
}

ExecChild::~ExecChild() {
  // First, so that it does not take a line that is half written for a whole one.
  child_.end();
  close_input();
  close(answers_);
}

std::size_t ExecChild::unread() const {
  int bytes = 0;
  if (input_ < 0 || ioctl(input_, FIONREAD, &bytes) != 0) return 0;
  return static_cast<std::size_t>(bytes);
}

void ExecChild::close_input() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

}  // namespace mailroom::exec
