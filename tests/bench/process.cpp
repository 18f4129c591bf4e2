#include "bench/process.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "support/subprocess.hpp"

namespace mailroom::bench {
namespace {

using Clock = std::chrono::steady_clock;

double to_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// This process's environment; `more` overrides variables of the same name.
std::vector<std::string> merged_environment(const std::map<std::string, std::string>& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (more.count(text.substr(0, text.find('='))) == 0) all.push_back(text);
  }
  for (const auto& [name, text] : more)
    all.push_back(name + "=" + text);
  return all;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const auto& text : texts)
    all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

void put(const std::string& path, int flags, int fd) {
  const int file = open(path.c_str(), flags, 0600);
  if (file < 0 || dup2(file, fd) < 0) _exit(126);
  close(file);
}

}  // namespace

Process::Process(Setup setup) : setup_(std::move(setup)) {
  const auto words = pointers(setup_.command);
  const auto settings = merged_environment(setup_.environment);
  const auto environment = pointers(settings);
  started_ = Clock::now();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot start " + setup_.command[0]);
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  put(setup_.input, O_RDONLY, STDIN_FILENO);
  if (setup_.output_fd >= 0) {
    if (dup2(setup_.output_fd, STDOUT_FILENO) < 0) _exit(126);
  } else {
    put(setup_.output, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  }
  put(setup_.errors, O_WRONLY | O_CREAT | O_APPEND, STDERR_FILENO);
  if (chdir(setup_.directory.c_str()) != 0) _exit(126);
  execvpe(words[0], words.data(), environment.data());
  _exit(127);
}

Process::Process(Process&& other) noexcept
    : setup_(std::move(other.setup_)), pid_(std::exchange(other.pid_, -1)), started_(other.started_) {}

Process::~Process() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

Cost Process::wait(std::chrono::seconds patience) {
  Cost cost;
  const auto until = started_ + patience;
  const auto ended = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0U));
  if (ended < 0) throw std::runtime_error("this kernel has no pidfd_open");
  pollfd watched{ended, POLLIN, 0};
  while (poll(&watched, 1, 10) <= 0 && Clock::now() < until)
    cost.peak_kib = std::max(cost.peak_kib, peak_kib_of(pid_));
  cost.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  close(ended);
  if ((watched.revents & POLLIN) == 0) fail("did not end in time");
  int status = 0;
  rusage used{};
  wait4(pid_, &status, 0, &used);
  pid_ = -1;
  cost.cpu_seconds = to_seconds(used.ru_utime) + to_seconds(used.ru_stime);
  cost.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (cost.status != 0 && cost.status != setup_.status)
    fail("ended with status " + std::to_string(cost.status));
  return cost;
}

void Process::fail(const std::string& what) const {
  std::string command;
  for (const auto& word : setup_.command)
    command += command.empty() ? word : " " + word;
  const auto errors = setup_.errors == "/dev/null" ? std::string() : test::read_file(setup_.errors);
  throw std::runtime_error(command + " " + what + "\n" +
                           errors.substr(errors.size() - std::min<std::size_t>(errors.size(), 2000)));
}

std::int64_t peak_kib_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6));
  }
  return 0;
}

double cpu_seconds_of(pid_t process) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0)
    throw std::runtime_error("a measured process has gone");
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace mailroom::bench
