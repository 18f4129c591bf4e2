#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "handed_over.hpp"
#include "support/delivery_rig.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test {

/// A database with accounts, whose batches collectors hand over.
struct HandoverRig : DeliveryRig {
  using DeliveryRig::DeliveryRig;

  TemporaryDirectory directory;
  std::string taken = directory.path() / "taken";

  void forget_sinks() { connection->run("DELETE FROM mailroom_sinks"); }
  /// `collect --exec` of child.py.
  std::unique_ptr<TestCollector> collect(const std::string& mode, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"--exec", child_command(taken, mode)});
    return std::make_unique<TestCollector>(database, options);
  }
};

/// The exit status of a collector that stops by itself.
inline int status_of(TestCollector& collector) {
  return collector.process().wait();
}

/// True if each of the tokens 1 to `count` was taken once.
inline bool each_once(const std::map<std::int64_t, int>& tokens, int count) {
  if (static_cast<int>(tokens.size()) != count) return false;
  for (const auto& [token, times] : tokens) {
    if (times != 1) return false;
  }
  return true;
}

}  // namespace mailroom::test
