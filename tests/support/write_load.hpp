#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/test_database.hpp"

namespace mailroom::test {

/// Writers that insert accounts and tokens in every way that reorders commits: single rows, many rows,
/// transactions that are held open or rolled back, savepoints. They start at once and run until stop().
class WriteLoad {
 public:
  struct Options {
    bool plain = false;      ///< single rows that are committed at once, so that there are few gaps
    bool prepares = false;   ///< also two-phase commits, which PostgreSQL refuses if inserts notify
    bool tolerant = false;   ///< continue in a new session after an error or a lost connection
    bool recovers = false;   ///< every third account is active, and its token a recovery
    int pause_ms = 0;        ///< maximum pause between two transactions
    std::string name = "w";  ///< prefix of its accounts, if several loads share a database
  };

  WriteLoad(const TestDatabase& database, int writers, std::uint64_t seed)
      : WriteLoad(database.conninfo(), writers, seed, {}) {}
  WriteLoad(std::string conninfo, int writers, std::uint64_t seed, const Options& options);
  ~WriteLoad();
  WriteLoad(const WriteLoad&) = delete;
  WriteLoad& operator=(const WriteLoad&) = delete;
  void stop();

 private:
  void write(int writer, std::uint64_t seed);

  std::string conninfo_;
  Options options_;
  std::atomic<bool> enough_{false};
  std::vector<std::thread> writers_;
};

/// Returns the ids of all tokens.
std::set<std::int64_t> committed_tokens(db::Connection& connection);

/// Waits until writers have committed this many tokens more. Throws if they do not.
void await_tokens(db::Connection& connection, std::int64_t more);

/// Counts leased batches and gaps; 0 when the queue is drained.
std::int64_t unfinished_work(db::Connection& connection);

}  // namespace mailroom::test
