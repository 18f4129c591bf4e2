#pragma once

#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test {

/// The result of a program that has ended.
struct FinishedRun {
  int status = 0;
  std::string output;
  std::string errors;
};

/// Runs `command` to its end, with `environment` added to this process's environment.
inline FinishedRun run_to_end(const std::vector<std::string>& command,
                              const std::map<std::string, std::string>& environment) {
  const TemporaryDirectory directory;
  const std::string output = directory.path() / "stdout";
  const std::string errors = directory.path() / "stderr";
  Subprocess process(command, environment, output, errors);
  const int status = process.wait();
  return {.status = status, .output = read_file(output), .errors = read_file(errors)};
}

}  // namespace mailroom::test
