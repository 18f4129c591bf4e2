#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

/// A real `mailroom collect` on a test's database, with its output in files.
class TestCollector {
 public:
  TestCollector(const TestDatabase& database, std::vector<std::string> options,
                const std::map<std::string, std::string>& environment = {});
  /// Runs on the database of `conninfo`. With `stdout_path` the output goes to that file, and output() is
  /// empty.
  TestCollector(const std::string& conninfo, std::vector<std::string> options,
                const std::map<std::string, std::string>& environment = {},
                const std::string& stdout_path = {});

  /// Stops it with SIGTERM and returns its exit status.
  int stop();
  Subprocess& process() { return process_; }
  std::string output() const { return read_file(stdout_path()); }
  std::string log() const { return read_file(stderr_path()); }
  std::string output_path() const { return stdout_path(); }
  std::vector<std::string> lines() const;
  /// Waits until it has logged `connected` `times` times.
  bool connected(int times = 1) const;

 private:
  std::string stdout_path() const { return directory_.path() / "stdout"; }
  std::string stderr_path() const { return directory_.path() / "stderr"; }

  TemporaryDirectory directory_;
  Subprocess process_;
};

/// The tokens in the jsonl `output`, in order. Throws for a line that does not parse; ignores a last line
/// without a newline.
std::vector<nlohmann::json> emitted_tokens(const std::string& output);

/// Counts how often each token id occurs among them. Throws for a token that does not verify.
std::map<std::int64_t, int> emitted_ids(const std::string& output);

/// The key that every TestCollector signs with.
extern const char* const test_key;

int count(const std::string& text, const std::string& part);

}  // namespace mailroom::test
