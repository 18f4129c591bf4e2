// Runs the program that prints an access token.

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/clock.hpp"
#include "base/duration.hpp"
#include "base/error.hpp"
#include "carriers/smtp/access_token.hpp"

namespace mailroom {
namespace {

constexpr std::size_t longest_output = 65'536;

[[noreturn]] void refuse_command(const std::string& problem, const std::string& words = {}) {
  throw Error(
      ExitCode::configuration,
      fmt::format("the program of send.token_command {}{}{}", problem, words.empty() ? "" : ": ", words),
      "run it by hand, as this user: it must print an access token");
}

/// Without what may hold a secret of ours.
std::vector<char*> command_environment() {
  std::vector<char*> environment;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (!text.starts_with("MAILROOM_") && !text.starts_with("PG") && !text.starts_with("NOTIFY_SOCKET="))
      environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  return environment;
}

/// A shell, in a process group of its own, that is killed with all it has started unless it has ended.
class TokenCommand {
 public:
  explicit TokenCommand(std::string command) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) refuse_command("cannot be started: no pipe");
    output_ = ends[0];
    errors_ = memfd_create("mailroom-token-errors", MFD_CLOEXEC);
    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (errors_ >= 0) posix_spawn_file_actions_adddup2(&actions, errors_, STDERR_FILENO);
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    std::string shell = "/bin/sh";
    std::string option = "-c";
    std::array<char*, 4> arguments{shell.data(), option.data(), command.data(), nullptr};
    auto environment = command_environment();
    const int failure =
        posix_spawn(&pid_, shell.c_str(), &actions, &attributes, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(ends[1]);
    if (failure == 0) return;
    close(output_);
    close(errors_);
    refuse_command(fmt::format("cannot be started: {}", std::strerror(failure)));
  }
  ~TokenCommand() {
    close(output_);
    if (pid_ > 0) end();
    if (errors_ >= 0) close(errors_);
  }
  TokenCommand(const TokenCommand&) = delete;
  TokenCommand& operator=(const TokenCommand&) = delete;

  int output() const { return output_; }
  /// The end of what it has written to stderr.
  std::string errors() const {
    struct stat file {};
    std::array<char, 4096> bytes{};
    const auto wanted = static_cast<off_t>(bytes.size());
    if (fstat(errors_, &file) != 0) return {};
    const auto size = pread(errors_, bytes.data(), bytes.size(), std::max<off_t>(file.st_size - wanted, 0));
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }
  /// Kills what runs still; the status as waitpid() says it.
  int end() {
    kill(-pid_, SIGKILL);
    return wait_for_end();
  }
  int wait_for_end() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  int errors_ = -1;  ///< a file in memory: a pipe that nobody empties would block the program
};

}  // namespace

std::string output_of_command(const std::string& command, Milliseconds limit) {
  TokenCommand running(command);
  const auto until = steady_now() + limit;
  std::string text;
  std::array<char, 4096> bytes{};
  for (;;) {
    const auto left = std::chrono::ceil<Milliseconds>(until - steady_now());
    pollfd awaited{.fd = running.output(), .events = POLLIN, .revents = 0};
    const int ready = poll(&awaited, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0)
      refuse_command(fmt::format("has not ended within {}", format_duration(limit)),
                     failure_words(running.errors()));
    const auto size = read(running.output(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(size));
    if (text.size() > longest_output) refuse_command("prints more than a token");
  }
  const int status = running.wait_for_end();
  const auto words = text.starts_with('{') ? failure_words(text) : failure_words(running.errors());
  if (WIFSIGNALED(status)) refuse_command(fmt::format("was ended by signal {}", WTERMSIG(status)), words);
  if (WEXITSTATUS(status) != 0)
    refuse_command(fmt::format("exited with status {}", WEXITSTATUS(status)), words);
  if (text.find_first_not_of(" \r\n") == std::string::npos) refuse_command("prints nothing", words);
  return text;
}

}  // namespace mailroom
