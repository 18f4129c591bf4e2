#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/subprocess.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

/// A real `mailroom collect` on a test's database, with its output in files.
class TestCollector {
 public:
  TestCollector(const TestDatabase& database, std::vector<std::string> options,
                const std::map<std::string, std::string>& environment = {});
  /// On the database that `conninfo` names. With `stdout_path`, its output goes there, and output() is empty.
  TestCollector(const std::string& conninfo, std::vector<std::string> options,
                const std::map<std::string, std::string>& environment = {},
                const std::string& stdout_path = {});

  /// Asks it to stop and returns its exit status.
  int stop();
  Subprocess& process() { return process_; }
  std::string output() const { return read_file(stdout_path()); }
  std::string log() const { return read_file(stderr_path()); }
  std::string output_path() const { return stdout_path(); }
  std::vector<std::string> lines() const;
  /// Waits until it says that it is connected, `times` times over.
  bool connected(int times = 1) const;

 private:
  std::string stdout_path() const { return folder_.path() / "stdout"; }
  std::string stderr_path() const { return folder_.path() / "stderr"; }

  TemporaryFolder folder_;
  Subprocess process_;
};

/// How often each token id stands in the jsonl `output`. Fails the test on a line that does not parse or a
/// token that does not verify; a last line without newline is left out.
std::map<std::int64_t, int> emitted_ids(const std::string& output);

/// The key that every TestCollector signs with.
extern const char* const test_key;

int count(const std::string& text, const std::string& part);

}  // namespace mailroom::test
