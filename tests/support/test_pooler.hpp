#pragma once

#include <memory>
#include <string>

#include "support/subprocess.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

/// A PgBouncer of the test's own before the server that scripts/with-postgres started.
class TestPooler {
 public:
  /// `mode` is its pool_mode: session, transaction or statement; `settings` further lines of its file.
  TestPooler(const TestDatabase& database, const std::string& mode, const std::string& settings = {});

  /// Leads to the database through the pooler.
  std::string conninfo() const;
  std::string log() const { return read_file(folder_.path() / "log"); }

 private:
  std::string configuration(const TestDatabase& database, const std::string& mode) const;

  std::string database_;
  TemporaryFolder folder_;
  std::unique_ptr<Subprocess> process_;
};

}  // namespace mailroom::test
