#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace mailroom::test {

/// The output of a program to its terminal, with newlines as in a file, and its exit status.
struct TerminalRun {
  int status = 0;
  std::string output;
};

/// Runs `command` in a new terminal with this many columns. Adds `environment` to this process's environment,
/// and types `typed` in advance. Kills the program after a minute.
TerminalRun run_in_terminal(const std::vector<std::string>& command,
                            const std::map<std::string, std::string>& environment, std::size_t columns,
                            const std::string& typed = "");

/// Returns the lines of `text` without colours and overwritten text.
std::vector<std::string> plain_lines(const std::string& text);

}  // namespace mailroom::test
