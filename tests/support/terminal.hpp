#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace mailroom::test {

/// What a program wrote to the terminal that it ran in, with newlines as in a file, and its exit status.
struct TerminalRun {
  int status = 0;
  std::string output;
};

/// Runs `command` in a terminal of its own with so many columns. `environment` comes on top of this process's
/// own, and `typed` is typed ahead. Killed after a minute.
TerminalRun run_in_terminal(const std::vector<std::string>& command,
                            const std::map<std::string, std::string>& environment, std::size_t columns,
                            const std::string& typed = "");

/// The lines of `text`, without their colours and without what was written over.
std::vector<std::string> plain_lines(const std::string& text);

}  // namespace mailroom::test
