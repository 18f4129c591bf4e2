#pragma once

#include <memory>
#include <string>

#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

/// A temporary PgBouncer in front of the server that scripts/with-postgres started.
class TestPooler {
 public:
  /// `mode` is its pool_mode: session, transaction or statement; `settings` are more lines of its file.
  TestPooler(const TestDatabase& database, const std::string& mode, const std::string& settings = {});

  /// The connection string of the database through the pooler.
  std::string conninfo() const;
  std::string log() const { return read_file(directory_.path() / "log"); }

 private:
  std::string configuration(const TestDatabase& database, const std::string& mode) const;

  std::string database_;
  TemporaryDirectory directory_;
  std::unique_ptr<Subprocess> process_;
};

}  // namespace mailroom::test
