// How long the upgrade of the original system's schema takes while it is in use, and how long writers wait.

#include <atomic>
#include <fmt/format.h>
#include <thread>

#include "bench/databases.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// An application that signs up a hundred accounts per second on its own session.
class Writer {
 public:
  Writer(Stage& stage, const std::string& database, std::string name)
      : connection_(stage.connect(database)), name_(std::move(name)), thread_([this] { write(); }) {}
  ~Writer() { stop(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

  /// Valid after stop(): the longest insert in seconds, and how many failed.
  double longest() const { return longest_; }
  int failed() const { return failed_; }

 private:
  void write() {
    for (int n = 0; !stopping_; ++n) {
      const auto start = Clock::now();
      try {
        connection_->run("INSERT INTO accounts (email, login) VALUES ($1 || '@bench.example', $1)",
                         name_ + std::to_string(n));
      } catch (const std::exception& error) {
        // A failure is part of the figure: the row measures whether an application notices the migration.
        if (++failed_ == 1) fmt::print(stderr, "an insert failed beside the migration: {}\n", error.what());
      }
      longest_ = std::max(longest_, std::chrono::duration<double>(Clock::now() - start).count());
      std::this_thread::sleep_until(start + std::chrono::milliseconds(10));
    }
  }

  std::unique_ptr<db::Connection> connection_;
  std::string name_;
  std::atomic<bool> stopping_{false};
  double longest_ = 0;
  int failed_ = 0;
  std::thread thread_;
};

Figures measure_upgrade(Stage& stage) {
  const std::string database = "upgraded";
  stage.drop_database(database);
  stage.create_database(database, original_database(stage));
  Writer one(stage, database, "one");
  Writer two(stage, database, "two");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto cost = Process(stage.mailroom(database, {"migrate", "-q", "-y"})).wait();
  one.stop();
  two.stop();
  stage.drop_database(database);
  return {{"total", cost.seconds, "s"},
          {"longest wait", std::max(one.longest(), two.longest()), "s"},
          {"failed inserts", static_cast<double>(one.failed() + two.failed()), ""}};
}

}  // namespace

std::vector<Row> migrate_rows() {
  return {{.name = "migrate/upgrade",
           .meaning = "the original schema with a million accounts, beside two writers at 100 inserts/s",
           .prepare = [](Stage& stage) { original_database(stage); },
           .measure = measure_upgrade}};
}

}  // namespace mailroom::bench
