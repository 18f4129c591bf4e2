#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "support/test_database.hpp"

namespace mailroom::test {

/// Writers that insert accounts in every way that reorders commits: single rows, many rows, transactions held
/// open, rolled back, savepoints. They begin at once and go on until stop().
class WriteLoad {
 public:
  WriteLoad(const TestDatabase& database, int writers, std::uint64_t seed);
  ~WriteLoad();
  void stop();

 private:
  std::atomic<bool> enough_{false};
  std::vector<std::thread> writers_;
};

/// Every token that is there.
std::set<std::int64_t> committed_tokens(Connection& connection);

/// Batches that are leased, and holes: nothing, once all is done.
std::int64_t unfinished_work(Connection& connection);

}  // namespace mailroom::test
