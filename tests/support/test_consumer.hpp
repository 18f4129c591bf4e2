#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test {

/// A real `mailroom collect` or `mailroom send` on the database of `conninfo`, with its output in files.
class TestConsumer {
 public:
  /// `words`: the command and its options. With `stdout_path` the output goes to that file, and output() is
  /// empty.
  TestConsumer(const std::vector<std::string>& words, const std::string& conninfo,
               std::map<std::string, std::string> environment, const std::string& stdout_path = {});
  virtual ~TestConsumer() = default;
  TestConsumer(const TestConsumer&) = delete;
  TestConsumer& operator=(const TestConsumer&) = delete;

  /// Stops it with SIGTERM, once it has a handler, and returns its exit status.
  int stop();
  int wait() { return process_.wait(); }
  Subprocess& process() { return process_; }
  std::string output() const { return read_file(output_path()); }
  std::string log() const { return read_file(directory_.path() / "stderr"); }
  std::string output_path() const { return directory_.path() / "stdout"; }
  std::vector<std::string> lines() const;
  /// Waits until it has logged `connected` `times` times. Before that it has no signal handler.
  bool connected(int times = 1) const;

 private:
  TemporaryDirectory directory_;
  Subprocess process_;
};

/// The key that every TestConsumer signs with.
extern const char* const test_key;

int count(const std::string& text, const std::string& part);

}  // namespace mailroom::test
