#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/test_database.hpp"

namespace mailroom::test {

/// Writers that insert accounts, and tokens, in every way that reorders commits: single rows, many rows,
/// transactions held open, rolled back, savepoints. They begin at once and go on until stop().
class WriteLoad {
 public:
  struct Options {
    bool plain = false;      ///< single rows that are committed at once, so that there are few gaps
    bool prepares = false;   ///< two-phase commits too, which PostgreSQL refuses where inserts notify
    bool tolerant = false;   ///< goes on after what the server refuses or a lost connection, in a new session
    int pause_ms = 0;        ///< at most so long between two transactions
    std::string name = "w";  ///< of its accounts, where several loads share a database
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

/// Every token that is there.
std::set<std::int64_t> committed_tokens(Connection& connection);

/// Batches that are leased, and holes: nothing, once all is done.
std::int64_t unfinished_work(Connection& connection);

}  // namespace mailroom::test
