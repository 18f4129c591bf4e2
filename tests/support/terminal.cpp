#include "support/terminal.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <poll.h>
#include <pty.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pattern.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test {
namespace {

constexpr auto patience = std::chrono::seconds(60);

[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::map<std::string, std::string>& environment) {
  std::vector<char*> arguments;
  for (const auto& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  for (const auto& [name, text] : environment)
    setenv(name.c_str(), text.c_str(), 1);
  execv(arguments[0], arguments.data());
  _exit(127);
}

/// Reads until the program has closed the terminal; read() fails then.
std::string read_all(int terminal, pid_t program) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string text;
  std::array<char, 65536> block{};
  for (;;) {
    pollfd ready{terminal, POLLIN, 0};
    if (poll(&ready, 1, 100) > 0) {
      const auto count = read(terminal, block.data(), block.size());
      if (count <= 0) return text;
      text.append(block.data(), static_cast<std::size_t>(count));
    }
    if (std::chrono::steady_clock::now() > deadline) kill(program, SIGKILL);
  }
}

}  // namespace

TerminalRun run_in_terminal(const std::vector<std::string>& command,
                            const std::map<std::string, std::string>& environment, std::size_t columns,
                            const std::string& typed) {
  winsize size{};
  size.ws_row = 200;
  size.ws_col = static_cast<unsigned short>(columns);
  int terminal = -1;
  const pid_t program = forkpty(&terminal, nullptr, nullptr, &size);
  if (program < 0) throw std::runtime_error("cannot open a terminal");
  if (program == 0) become(command, environment);
  if (write(terminal, typed.data(), typed.size()) != static_cast<ssize_t>(typed.size()))
    throw std::runtime_error("cannot write to the terminal");
  TerminalRun run{.output = read_all(terminal, program)};
  int status = 0;
  waitpid(program, &status, 0);
  close(terminal);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.output = Pattern("\r+\n").replaced(run.output, "\n");
  return run;
}

std::vector<std::string> plain_lines(const std::string& text) {
  static const Pattern colour("\x1b\\[[0-9;]*m");
  auto lines = lines_of(colour.replaced(text, ""));
  for (auto& line : lines)
    line.erase(0, line.rfind('\r') + 1);
  return lines;
}

}  // namespace mailroom::test
