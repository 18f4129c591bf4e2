#include "process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace mailroom::golden {
namespace {

using Clock = std::chrono::steady_clock;

/// How long to wait for output before asking again whether the command has ended.
constexpr int patience_ms = 5;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// The reading end of a pipe that fills a string.
class Capture {
 public:
  Capture() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) fail("pipe");
    if (fcntl(ends_[0], F_SETFL, O_NONBLOCK) != 0) fail("fcntl");
  }
  ~Capture() {
    close(ends_[0]);
    close_writer();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  /// -1 once the writers are gone, so that poll() skips it.
  int reader() const { return open_ ? ends_[0] : -1; }

  /// Takes what is there, without waiting.
  void read_available() {
    std::array<char, 65536> block{};
    while (open_) {
      const ssize_t count = read(ends_[0], block.data(), block.size());
      if (count > 0) {
        text.append(block.data(), static_cast<std::size_t>(count));
      } else if (count == 0) {
        open_ = false;
      } else if (errno != EINTR) {
        return;
      }
    }
  }

  std::string text;

 private:
  std::array<int, 2> ends_{-1, -1};
  bool open_ = true;
};

/// Never returns: the child's way from fork to exec.
[[noreturn]] void become(const char* directory, char* const* arguments, char* const* environment, int out,
                         int err) {
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (setsid() >= 0 && in >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0 &&
      chdir(directory) == 0) {
    execve("/bin/sh", arguments, environment);
  }
  _exit(126);
}

int exit_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Shell::Shell(std::filesystem::path directory, std::vector<std::string> environment)
    : directory_(std::move(directory)), environment_(std::move(environment)) {}

Shell::~Shell() {
  end_background();
}

void Shell::end_background() {
  for (const pid_t group : groups_)
    kill(-group, SIGKILL);
  groups_.clear();
}

Result Shell::run(const std::string& command, std::chrono::milliseconds limit) {
  Capture out;
  Capture err;
  std::string text = command;
  std::string shell = "sh";
  std::string option = "-c";
  const std::array<char*, 4> arguments{shell.data(), option.data(), text.data(), nullptr};
  std::vector<char*> environment;
  for (auto& variable : environment_)
    environment.push_back(variable.data());
  environment.push_back(nullptr);

  const auto deadline = Clock::now() + limit;
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0)
    become(directory_.c_str(), arguments.data(), environment.data(), out.writer(), err.writer());
  groups_.push_back(child);
  out.close_writer();
  err.close_writer();

  int status = 0;
  bool killed = false;
  while (waitpid(child, &status, WNOHANG) == 0) {
    std::array<pollfd, 2> readers{pollfd{out.reader(), POLLIN, 0}, pollfd{err.reader(), POLLIN, 0}};
    poll(readers.data(), readers.size(), patience_ms);
    out.read_available();
    err.read_available();
    if (!killed && Clock::now() >= deadline) {
      kill(-child, SIGKILL);
      kill(child, SIGKILL);
      killed = true;
    }
  }
  out.read_available();
  err.read_available();
  if (killed) err.text += "golden: the command took too long and was killed\n";
  return {out.text, err.text, exit_status(status)};
}

}  // namespace mailroom::golden
