#pragma once

#include "support/subprocess.hpp"
#include "support/temporary_folder.hpp"

namespace mailroom::test {

/// What a program that has ended left behind.
struct FinishedRun {
  int status = 0;
  std::string output;
  std::string errors;
};

/// Runs `command` to its end, with `environment` on top of this process's own.
inline FinishedRun run_to_end(const std::vector<std::string>& command,
                              const std::map<std::string, std::string>& environment) {
  const TemporaryFolder folder;
  const std::string output = folder.path() / "stdout";
  const std::string errors = folder.path() / "stderr";
  Subprocess process(command, environment, output, errors);
  const int status = process.wait();
  return {.status = status, .output = read_file(output), .errors = read_file(errors)};
}

}  // namespace mailroom::test
