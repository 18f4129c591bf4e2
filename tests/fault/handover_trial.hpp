#pragma once

#include <memory>
#include <random>
#include <set>

#include "fault/fault.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_collector.hpp"
#include "support/write_load.hpp"

namespace mailroom::test {

/// One database with writers and collectors that hand batches over. The oracle reads the log of the other
/// side, which logs a line when it takes it, and compares it with what is recorded.
class HandoverTrial {
 public:
  struct Options {
    int collectors = 3;
    int writers = 6;
    int limit = 5;
    int lines = 4;                    ///< in a claim
    std::vector<std::string> more{};  ///< options of the collectors: --exec or --to
    std::map<std::string, std::string> environment{};
    std::chrono::seconds patience{120};  ///< of finish(), with no token that gets a final state
  };

  /// The other side writes its log into `log`.
  HandoverTrial(Cluster& cluster, const Plan& plan, Options options, std::string log);
  ~HandoverTrial();
  HandoverTrial(const HandoverTrial&) = delete;
  HandoverTrial& operator=(const HandoverTrial&) = delete;

  TestCollector& collector(int index) { return *collectors_.at(static_cast<std::size_t>(index)); }
  /// Sends `signal` to a collector, waits until it has ended, and starts another one. Returns its exit
  /// status.
  int replace(int index, int signal);
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  void pause(int from_ms, int to_ms);
  /// Allows this many tokens to be taken again. What the other side took and did not answer is allowed
  /// anyway.
  void allow_repeats(int tokens) { allowed_ += tokens; }
  /// The tokens of a claim.
  int claim() const { return options_.limit * options_.lines; }
  void expect(bool met, const std::string& what);

  /// Stops the writers, makes deferred tokens due until none is left, stops the collectors, and judges.
  Outcome finish(int rounds);

 private:
  std::unique_ptr<Connection> connect() const;
  std::unique_ptr<TestCollector> make() const;
  bool drains();
  void judge();
  void judge_records(Connection& connection, const std::set<std::int64_t>& taken);

  Options options_;
  std::string log_;
  std::string database_;
  std::string conninfo_;
  std::string admin_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<TestCollector>> collectors_;
  std::vector<std::string> logs_;  ///< of collectors that have ended
  std::unique_ptr<WriteLoad> load_;
  int allowed_ = 0;
  std::chrono::seconds patience_;
  Outcome outcome_;
};

}  // namespace mailroom::test
