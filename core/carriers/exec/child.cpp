// posix_spawn(3) with a filtered environment, and a pidfd that shows the end of the program.

#include "carriers/exec/child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr int ack_descriptor = 3;

/// A pipe whose ends close with it.
struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw Error(ExitCode::failed, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// One of the ends, for keeps, which does not block.
  int take(std::size_t which) {
    fcntl(ends.at(which), F_SETFL, O_NONBLOCK);
    return std::exchange(ends.at(which), -1);
  }

  std::array<int, 2> ends{-1, -1};
};

/// False for what may hold a secret of ours, or is how the service manager knows us.
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
  SpawnOptions(const Pipe& input, const Pipe& answers, AckOn ack_on) {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    const bool on_stdout = ack_on == AckOn::stdout;
    posix_spawn_file_actions_adddup2(&actions, input.ends[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, answers.ends[1], on_stdout ? STDOUT_FILENO : ack_descriptor);
    posix_spawn_file_actions_addclosefrom_np(&actions, on_stdout ? ack_descriptor : ack_descriptor + 1);
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

pid_t spawn(std::vector<std::string> words, const SpawnOptions& options) {
  std::vector<char*> arguments;
  for (auto& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  auto environment = child_environment();
  pid_t pid = -1;
  const int failure = posix_spawnp(&pid, arguments.front(), &options.actions, &options.attributes,
                                   arguments.data(), environment.data());
  if (failure != 0) {
    throw Error(ExitCode::configuration,
                fmt::format("cannot start {}: {}", shown_text(words.front()), std::strerror(failure)),
                hint_for_start(words.front(), failure));
  }
  return pid;
}

}  // namespace

ExecChild::ExecChild(const std::vector<std::string>& words, AckOn ack_on) {
  Pipe input;
  Pipe answers;
  pid_ = spawn(words, SpawnOptions(input, answers, ack_on));
  input_ = input.take(1);
  answers_ = answers.take(0);
  process_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
}

ExecChild::~ExecChild() {
  if (!ended_) {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close_input();
  close(answers_);
  if (process_ >= 0) close(process_);
}

std::size_t ExecChild::unread() const {
  int bytes = 0;
  if (input_ < 0 || ioctl(input_, FIONREAD, &bytes) != 0) return 0;
  return static_cast<std::size_t>(bytes);
}

std::optional<std::string> ExecChild::ended() {
  if (ended_) return ended_;
  siginfo_t state{};
  // The group keeps its number until its leader is reaped.
  if (waitid(P_PID, static_cast<id_t>(pid_), &state, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      state.si_pid == pid_) {
    signal(SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    ended_ = WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                                 : fmt::format("exited with status {}", WEXITSTATUS(status));
  }
  return ended_;
}

void ExecChild::close_input() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

void ExecChild::signal(int number) const {
  kill(-pid_, number);
}

}  // namespace mailroom
