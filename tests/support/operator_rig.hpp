#pragma once

#include <cstdlib>
#include <filesystem>

#include "support/build_paths.hpp"
#include "support/finished_run.hpp"
#include "support/test_collector.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test {

/// The operator of a test's database: runs mailroom, and types the commands that it prints.
class OperatorRig {
 public:
  explicit OperatorRig(const TestDatabase& database) : conninfo_(database.conninfo()) {
    const auto directory = std::filesystem::path(mailroom_binary).parent_path().string();
    const auto* path = std::getenv("PATH");
    environment_ = {
        {"MAILROOM_DATABASE_URL", conninfo_},
        {"MAILROOM_SECRET_KEY", test_key},
        {"PATH", (programs_.path() / "bin").string() + ":" + directory + ":" + (path ? path : "")}};
  }

  FinishedRun mailroom(std::vector<std::string> words) const {
    words.insert(words.begin(), mailroom_binary);
    return run_to_end(words, environment_);
  }

  /// Runs `command` on a terminal, and answers every question with yes. The output is everything that it
  /// shows. SQL runs in a session whose search_path finds none of our objects.
  FinishedRun type(const std::string& command) const {
    if (command.ends_with(';')) {
      return run_to_end(
          {"/bin/sh", "-c",
           "PGOPTIONS=-csearch_path=pg_catalog exec psql -XAtq -v ON_ERROR_STOP=1 -d \"$1\" -c \"$2\"", "sh",
           conninfo_, command},
          environment_);
    }
    return run_to_end({"/bin/sh", "-c", "echo y | script -qec \"$1\" /dev/null", "sh", command},
                      environment_);
  }

  /// Creates a program of this name that only records its arguments.
  void stub(const std::string& program) const {
    programs_.write(
        "bin/" + program,
        "#!/bin/sh\nfor word; do printf '[%s]' \"$word\"; done >> '" + calls_path(program) + "'\n", 0755);
  }
  std::string path() const { return environment_.at("PATH"); }
  /// The arguments of all calls of a stub: `[word][word]`.
  std::string calls(const std::string& program) const { return read_file(calls_path(program)); }

 private:
  std::string calls_path(const std::string& program) const { return programs_.path() / (program + ".calls"); }

  std::string conninfo_;
  std::map<std::string, std::string> environment_;
  TemporaryDirectory programs_;
};

/// Returns the texts after `fix:` in `text`, in order.
inline std::vector<std::string> fixes_in(const std::string& text) {
  std::vector<std::string> fixes;
  const std::string label = "fix: ";
  for (const auto& line : lines_of(text)) {
    const auto at = line.find_first_not_of(' ');
    if (at != std::string::npos && line.compare(at, label.size(), label) == 0)
      fixes.push_back(line.substr(at + label.size()));
  }
  return fixes;
}

}  // namespace mailroom::test
