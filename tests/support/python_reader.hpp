#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test {

/// What the parser of Python's standard library understands of each message: see read_messages.py.
inline std::vector<nlohmann::json> read_by_python(const std::vector<std::string>& messages) {
  const TemporaryDirectory directory;
  std::string input;
  for (const auto& message : messages)
    input += std::to_string(message.size()) + "\n" + message;
  const auto path = directory.write("messages", input);
  const auto out = (directory.path() / "out").string();
  const auto err = (directory.path() / "err").string();
  Subprocess python(
      {"/bin/sh", "-c", "exec python3 '" + source_directory + "/tests/support/read_messages.py' < " + path},
      {{"PYTHONUTF8", "1"}}, out, err);
  const int status = python.wait(std::chrono::seconds(300));
  INFO(read_file(err));
  INFO("a status of 127 means that python3 is missing: scripts/install-packages --tests");
  REQUIRE(status == 0);
  std::vector<nlohmann::json> read;
  for (const auto& line : lines_of(read_file(out)))
    read.push_back(parse_json(line));
  return read;
}

}  // namespace mailroom::test
