#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test {

/// A real `mailroom send` on the database of `conninfo`, with its output in files.
class TestSender {
 public:
  TestSender(const std::string& conninfo, const std::string& relay, std::vector<std::string> options = {},
             std::map<std::string, std::string> environment = {});

  int wait() { return process_.wait(); }
  /// Stops it with SIGTERM and returns its exit status.
  int stop();
  Subprocess& process() { return process_; }
  std::string log() const { return read_file(directory_.path() / "stderr"); }
  std::string output() const { return read_file(directory_.path() / "stdout"); }
  /// Waits until it has logged `connected`.
  bool connected() const;

 private:
  TemporaryDirectory directory_;
  Subprocess process_;
};

/// The signed token of the link in a mail; empty if there is none.
std::string token_of(const TakenMail& mail);

/// The id of the token that a mail's Message-ID names; 0 if there is none.
std::int64_t token_id_of(const TakenMail& mail);

}  // namespace mailroom::test
