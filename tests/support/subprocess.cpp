#include "support/subprocess.hpp"

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace mailroom::test {
namespace {

void redirect(const std::string& path, int fd) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file < 0 || dup2(file, fd) < 0) _exit(126);
  close(file);
}

}  // namespace

Subprocess::Subprocess(const std::vector<std::string>& command,
                       const std::map<std::string, std::string>& environment, const std::string& stdout_path,
                       const std::string& stderr_path) {
  std::vector<char*> arguments;
  for (const auto& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  for (const auto& [name, text] : environment)
    setenv(name.c_str(), text.c_str(), 1);
  redirect(stdout_path, STDOUT_FILENO);
  redirect(stderr_path, STDERR_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

Subprocess::~Subprocess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Subprocess::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
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
