// posix_spawn(3) with a filtered environment, and a pidfd that shows the end of the program.

#include "process/child.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <string_view>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"

namespace mailroom::process {
namespace {

bool is_for_child(std::string_view variable) {
  for (const std::string_view prefix :
       {"MAILROOM_", "PG", "CREDENTIALS_DIRECTORY=", "NOTIFY_SOCKET=", "WATCHDOG_", "LISTEN_"}) {
    if (variable.starts_with(prefix)) return false;
  }
  return true;
}

std::vector<char*> child_environment() {
  std::vector<char*> environment;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (is_for_child(*variable)) environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  return environment;
}

struct SpawnOptions {
  explicit SpawnOptions(const std::vector<ChildDescriptor>& descriptors) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    int last = STDERR_FILENO;
    for (const auto& descriptor : descriptors) {
      posix_spawn_file_actions_adddup2(&actions, descriptor.ours, descriptor.number);
      last = std::max(last, descriptor.number);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, last + 1);
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnOptions() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

}  // namespace

Pipe::Pipe() {
  if (pipe2(ends_.data(), O_CLOEXEC) != 0)
    throw Error(ExitCode::failed, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
}

Pipe::~Pipe() {
  for (const int end : ends_) {
    if (end >= 0) close(end);
  }
}

int Pipe::take_reader() {
  return std::exchange(ends_[0], -1);
}

int Pipe::take_writer() {
  return std::exchange(ends_[1], -1);
}

Child::~Child() {
  end();
  if (process_ >= 0) close(process_);
}

void Child::end() {
  if (pid_ <= 0 || status_) return;
  signal(SIGKILL);
  wait();
}

int Child::start(std::vector<std::string> words, const std::vector<ChildDescriptor>& descriptors) {
  std::vector<char*> arguments;
  for (auto& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  auto environment = child_environment();
  const SpawnOptions options(descriptors);
  const int failure = posix_spawnp(&pid_, arguments.front(), &options.actions, &options.attributes,
                                   arguments.data(), environment.data());
  if (failure == 0) process_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  return failure;
}

std::optional<std::string> Child::ended() {
  return reap(WNOHANG);
}

std::string Child::wait() {
  return *reap(0);
}

std::optional<std::string> Child::reap(int options) {
  if (!status_) {
    siginfo_t state{};
    // The group keeps its number until its leader is reaped.
    while (waitid(P_PID, static_cast<id_t>(pid_), &state, WEXITED | WNOWAIT | options) != 0 &&
           errno == EINTR) {
    }
    if (state.si_pid != pid_) return std::nullopt;
    signal(SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    status_ = status;
  }
  return WIFSIGNALED(*status_) ? fmt::format("was killed by signal {}", WTERMSIG(*status_))
                               : fmt::format("exited with status {}", WEXITSTATUS(*status_));
}

void Child::signal(int number) const {
  kill(-pid_, number);
}

}  // namespace mailroom::process
