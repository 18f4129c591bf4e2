#pragma once

#include <string>

#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test {

/// The result of a command of /bin/sh.
struct ShellOutput {
  int status = 0;
  std::string out;
  std::string err;
};

/// Runs `command` in `directory`, without the user's own configuration.
inline ShellOutput run_shell(const std::string& command, const TemporaryDirectory& directory) {
  const TemporaryDirectory home;
  const auto out = (home.path() / "stdout").string();
  const auto err = (home.path() / "stderr").string();
  Subprocess shell({"/bin/sh", "-c", "cd '" + directory.path().string() + "' && " + command},
                   {{"HOME", home.path()}, {"XDG_CONFIG_HOME", home.path()}, {"LC_ALL", "C.UTF-8"}}, out,
                   err);
  const int status = shell.wait();
  return {status, read_file(out), read_file(err)};
}

}  // namespace mailroom::test
