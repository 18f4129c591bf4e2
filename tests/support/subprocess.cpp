#include "support/subprocess.hpp"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace mailroom::test {
namespace {

/// This process's environment with `changes`, as NAME=TEXT.
std::vector<std::string> changed_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> variables;
  for (const auto& [name, text] : changes)
    variables.push_back(name + "=" + text);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!changes.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  return variables;
}

std::vector<char*> null_terminated(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Subprocess::Subprocess(const std::vector<std::string>& command,
                       const std::map<std::string, std::string>& environment, const std::string& stdout_path,
                       const std::string& stderr_path) {
  auto words = command;
  auto variables = changed_environment(environment);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  constexpr int appends = O_WRONLY | O_CREAT | O_APPEND;
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, stdout_path.c_str(), appends, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, stderr_path.c_str(), appends, 0600);
  // fork() copies the tables of all pages, which under the sanitizers takes longer than most programs.
  const int error = posix_spawnp(&pid_, words.at(0).c_str(), &files, nullptr, null_terminated(words).data(),
                                 null_terminated(variables).data());
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot start " + words.at(0) + ": " + std::strerror(error));
}

Subprocess::~Subprocess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Subprocess::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

void Subprocess::await_handler(int number) const {
  eventually([&] { return has_ended() || catches(pid_, number); });
}

bool Subprocess::has_ended() const {
  siginfo_t ended{};
  return waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         ended.si_pid != 0;
}

int Subprocess::wait(std::chrono::seconds patience) {
  // For kill(2) and waitpid(2) -1 means every process.
  if (pid_ <= 0) throw std::logic_error("wait() was called again after the program had ended");
  int status = 0;
  if (!eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, patience)) {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool Subprocess::is_stopped() const {
  return read_file("/proc/" + std::to_string(pid_) + "/stat").find(") T ") != std::string::npos;
}

bool catches(pid_t pid, int number) {
  const auto status = read_file("/proc/" + std::to_string(pid) + "/status");
  const auto at = status.find("SigCgt:");
  return at != std::string::npos &&
         (std::stoull(status.substr(at + 7), nullptr, 16) >> (number - 1) & 1U) != 0;
}

bool eventually(const std::function<bool()>& condition, std::chrono::seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace mailroom::test
