#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "support/test_collector.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

/// A database whose batches `collect` hands over to a broker.
class HandedOver {
 public:
  HandedOver(std::string to, std::map<std::string, std::string> environment)
      : to_(std::move(to)), environment_(std::move(environment)) {}

  TestDatabase database;

  /// Accounts sign up all the time, while one collector after the other is killed at a random moment after
  /// its first tokens were accepted; then the last one empties the queue: see collect_all().
  std::string collect_with_kills(int kills) {
    std::atomic<bool> is_over = false;
    std::thread writer([&] {
      const auto connection = database.connect();
      for (int i = 0; !is_over; ++i) {
        insert_accounts(*connection, 40, "user" + std::to_string(i) + "x");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
    std::minstd_rand random(7);
    for (int i = 0; i < kills; ++i) {
      const auto has_begun = has_accepted(accepted() + 1);
      TestCollector collector(database, {"--to", to_, "--batch-limit", "10"}, environment_);
      if (!eventually(has_begun)) {
        is_over = true;
        writer.join();
        throw std::runtime_error("a collector handed nothing over: " + collector.log());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
      collector.process().signal(SIGKILL);
      collector.process().wait();
    }
    is_over = true;
    writer.join();
    return collect_all();
  }

  /// Empties the queue by a collector that waits for the servers until each token is accepted; its log, if
  /// its exit status is not 0, or if that takes longer than two minutes.
  std::string collect_all() {
    TestCollector collector(database, {"--to", to_, "--batch-limit", "10"}, environment_);
    const bool has_all = eventually([&] { return accepted() == tokens(); }, std::chrono::minutes(2));
    const int status = collector.stop();
    return has_all && status == 0 ? "" : collector.log() + "exit status " + std::to_string(status);
  }

  /// Empties the queue, also of the tokens that were deferred; the log, if the exit status is not 0.
  std::string collect_once() {
    std::string log;
    const auto connection = database.connect();
    do {
      connection->run("UPDATE mailroom_deliveries SET not_before = '-infinity' WHERE not_before IS NOT NULL");
      connection->run("DELETE FROM mailroom_sinks");
      log += collect();
    } while (log.empty() &&
             value<int>(*connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = 'deferred'") >
                 0);
    return log;
  }

  /// Tokens that are not in `emitted` as often as they should be: once, or at least once.
  int wrong(const std::map<std::int64_t, int>& emitted, bool once) {
    const auto connection = database.connect();
    int wrong = 0;
    for (const auto& row : connection->run("SELECT id FROM tokens")) {
      const auto found = emitted.find(row[0].as<std::int64_t>());
      const int times = found == emitted.end() ? 0 : found->second;
      if (times == 0 || (once && times != 1)) ++wrong;
    }
    return wrong;
  }

  int tokens() { return value<int>(*database.connect(), "SELECT count(*) FROM tokens"); }
  int accepted() { return accepted(*database.connect()); }
  /// For another thread: true once as many tokens are recorded as accepted.
  std::function<bool()> has_accepted(int tokens) {
    return [tokens, connection = std::shared_ptr<db::Connection>(database.connect())] {
      return accepted(*connection) >= tokens;
    };
  }

 private:
  static int accepted(db::Connection& connection) {
    return value<int>(connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = 'accepted'");
  }
  std::string collect() {
    TestCollector collector(database, {"--to", to_, "--batch-limit", "10", "--once"}, environment_);
    const int status = collector.process().wait();
    return status == 0 ? "" : collector.log() + "exit status " + std::to_string(status);
  }

  std::string to_;
  std::map<std::string, std::string> environment_;
};

}  // namespace mailroom::test
