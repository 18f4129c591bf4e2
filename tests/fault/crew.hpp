#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test {

/// Collectors as real processes, each with its own output files. Replaces ended collectors by new ones with
/// new files, and keeps the output of all. Also measures the longest time in which none of them wrote.
class Crew {
 public:
  /// `serving`: the queues of each member, as in --queue; empty if all have the default.
  Crew(std::string conninfo, int size, std::vector<std::string> options,
       std::map<std::string, std::string> environment = {}, std::vector<std::string> serving = {});
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int size() const { return static_cast<int>(members_.size()); }
  TestCollector& member(int index) { return *members_.at(static_cast<std::size_t>(index)); }
  void hire(std::string conninfo);
  /// After stop(): starts as many collectors on another database.
  void move_to(std::string conninfo);
  /// Sends `signal` to one collector, waits until it has ended, and replaces it. Returns its exit status.
  int replace(int index, int signal);
  /// Adds the output of a process outside the crew.
  void keep(std::string output);
  /// Stops all collectors; returns their exit statuses.
  std::vector<int> stop();

  std::vector<std::string> outputs() const;
  std::vector<std::string> logs() const;
  std::uintmax_t bytes() const;
  /// Waits until a collector writes; false after `patience`.
  bool writes_again(std::chrono::seconds patience = std::chrono::seconds(30)) const;

  void begin_watch();
  /// The longest time without a byte since begin_watch().
  Milliseconds end_watch();

 private:
  std::unique_ptr<TestCollector> make(std::size_t index) const;
  void watch();

  std::string conninfo_;
  std::vector<std::string> options_;
  std::map<std::string, std::string> environment_;
  std::vector<std::string> serving_;
  mutable std::mutex lock_;
  std::vector<std::unique_ptr<TestCollector>> members_;
  std::vector<std::unique_ptr<TestCollector>> gone_;
  std::vector<std::string> kept_;
  std::uintmax_t bytes_of_gone_ = 0;
  std::atomic<bool> watching_{false};
  std::thread watcher_;
  Milliseconds longest_{};
};

}  // namespace mailroom::test
