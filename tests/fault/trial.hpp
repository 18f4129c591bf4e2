#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fault/crew.hpp"
#include "fault/fault.hpp"
#include "support/write_load.hpp"

namespace mailroom::test {

/// One database with writers and collectors, in which a fault is played, and the oracle at the end.
class Trial {
 public:
  struct Options {
    int collectors = 3;
    int writers = 10;
    int limit = 10;
    WriteLoad::Options load{.prepares = false, .tolerant = true, .pause_ms = 20};
    bool silent = false;              ///< without the trigger that notifies
    bool slow_triggers = true;        ///< one insert in twenty takes up to 30 ms after drawing its id
    std::string collectors_reach{};   ///< their connection string, when it is not the cluster's
    bool writers_too = false;         ///< reach it the same way
    std::vector<std::string> more{};  ///< further options of the collectors
    std::map<std::string, std::string> environment{};
  };

  Trial(Cluster& cluster, const Plan& plan, Options options);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  Crew& crew() { return *crew_; }
  std::mt19937_64& random() { return random_; }
  const std::string& conninfo() const { return conninfo_; }
  int limit() const { return options_.limit; }
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  void pause(int from_ms, int to_ms);

  /// A new session with the database; waits for a server that is starting.
  std::unique_ptr<Connection> connect() const;
  /// From now on the oracle looks at the same database of `cluster`.
  void move_to(const Cluster& cluster) { conninfo_ = cluster.conninfo(database_); }
  /// Also ends the watch for the longest gap.
  void stop_writers();

  /// So many tokens more may have been repeated.
  void allow_repeats(int tokens) { allowed_ += static_cast<std::size_t>(tokens); }
  /// Tokens that were emitted and are not there in the end are expected.
  void allow_strange() { strange_allowed_ = true; }
  void expect(bool met, const std::string& what);
  /// To be called when the server accepts connections again: waits for the next line of a collector, and
  /// expects it within 2 s. finish() notes the slowest.
  void expect_delivery_again();
  void note(std::string figure) { outcome_.notes.push_back(std::move(figure)); }

  /// What has not come by now does not come: finish() waits no longer for it.
  void give_up() { patience_ = std::chrono::seconds(1); }
  /// Lets the writers end, the queue drain and the collectors stop, and judges all that was written.
  Outcome finish(int rounds);

 private:
  void judge();

  Options options_;
  std::string database_;
  std::string conninfo_;
  std::string admin_;  ///< leads to another database of the same cluster
  std::mt19937_64 random_;
  std::unique_ptr<Crew> crew_;
  std::unique_ptr<WriteLoad> load_;
  std::size_t allowed_ = 0;
  bool strange_allowed_ = false;
  std::chrono::seconds patience_{120};
  std::optional<Milliseconds> slowest_recovery_{};
  Outcome outcome_;
};

/// Few gaps, and seldom more than one batch in flight: most claims are the usual ones.
Trial::Options calm_queue(int collectors);

/// A database with the schema, named anew; its name.
std::string make_database(const Cluster& cluster);

}  // namespace mailroom::test
