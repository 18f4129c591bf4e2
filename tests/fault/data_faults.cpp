// Faults of data and settings while collectors run.

#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "fault/trial.hpp"
#include "replay/sequence_fix.hpp"

namespace mailroom::test {
namespace {

/// Timeouts of the database, and a table that is locked for longer: a collector's session has none of them.
Outcome timeouts(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 2});
  const auto connection = trial.connect();
  const auto watcher = trial.connect();
  const auto name = value<std::string>(*connection, "SELECT current_database()");
  std::vector<std::string> kinds{"lock_timeout", "statement_timeout"};
  if (knows_setting(*connection, "transaction_timeout")) kinds.emplace_back("transaction_timeout");
  for (int round = 0; round < plan.rounds; ++round) {
    const auto& kind = kinds[static_cast<std::size_t>(round) % kinds.size()];
    connection->run(fmt::format("ALTER DATABASE {} SET {} = '150ms'", name, kind));
    trial.crew().replace(0, SIGTERM);
    trial.expect(trial.crew().member(0).connected(), "a collector connects");
    const auto outlasts = [&] {
      return value<int>(*watcher,
                        "SELECT count(*) FROM pg_locks WHERE NOT granted AND clock_timestamp() - waitstart > "
                        "interval '300 ms'") > 0;
    };
    connection->transact([&](pqxx::work& work) {
      db::Connection::execute(work, "LOCK TABLE mailroom_batches IN ACCESS EXCLUSIVE MODE");
      trial.expect(eventually(outlasts), "a collector waits for longer than the time limit");
    });
    connection->run(fmt::format("ALTER DATABASE {} RESET {}", name, kind));
    trial.expect(trial.crew().writes_again(), "delivery resumes after the lock");
    const auto log = trial.crew().member(0).log();
    trial.expect(count(log, "connection lost") + count(log, "retrying") == 0, "no timeout occurred");
  }
  return trial.finish(plan.rounds);
}

/// Restores into another cluster, which has other transaction ids, while gaps are waiting.
Outcome dump_and_restore(Cluster& cluster, const Plan& plan) {
  Cluster other({.tcp = false, .settings = {}});
  Trial trial(cluster, plan, {.collectors = 2});
  db::Connection foreign(cluster.conninfo("postgres"), "foreign");
  foreign.run("BEGIN");
  foreign.run("SELECT pg_current_xact_id()");
  trial.pause(1500, 2000);
  trial.stop_writers();
  for (const int status : trial.crew().stop())
    trial.expect(status == 0, "a collector ends with 0");
  const auto name = value<std::string>(*trial.connect(), "SELECT current_database()");
  insert_accounts(*trial.connect(), 50, "dumped");
  trial.expect(value<int>(*trial.connect(), "SELECT count(*) FROM mailroom_gaps") > 0, "gaps are waiting");
  const auto dump = cluster.path(name + ".sql");
  cluster.run({"pg_dump", "-h", cluster.host(), "-p", std::to_string(cluster.port()), "-U", "postgres", "-f",
               dump, name});
  foreign.run("ROLLBACK");
  std::filesystem::permissions(cluster.host(), std::filesystem::perms(0755));
  db::Connection(other.conninfo("postgres"), "harness").run("CREATE DATABASE " + name);
  other.run(
      {"psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", other.host(), "-U", "postgres", "-d", name, "-f", dump});
  trial.move_to(other);
  // Until then a consumer takes it for a copy.
  trial.connect()->run("SELECT mailroom_adopt(NULL)");
  trial.crew().move_to(trial.conninfo());
  return trial.finish(1);
}

/// TRUNCATE locks the table and then its sequence, a claim locks them the other way round: of the two, the
/// server may end the TRUNCATE. Whoever typed it types it again.
void truncate_tokens(db::Connection& connection) {
  const auto done = [&] {
    try {
      connection.run("TRUNCATE tokens RESTART IDENTITY");
      return true;
    } catch (const db::DatabaseError& error) {
      if (error.sqlstate() != db::sqlstate::deadlock) throw;
      return false;
    }
  };
  while (!done()) {
  }
}

/// The collector stops rather than lose the new tokens, and continues after rewind-cursor --fix-sequence.
Outcome truncate_and_restart(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 1, .writers = 0});
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    insert_accounts(*connection, 100, fmt::format("before{}-", round));
    trial.expect(eventually([&] { return is_drained(*connection); }), "the queue drains");
    truncate_tokens(*connection);
    insert_accounts(*connection, 20, fmt::format("after{}-", round));
    const auto refused = [&] { return count(trial.crew().member(0).log(), "behind the cursor") > 0; };
    trial.expect(eventually(refused), "the collector refuses");
    replay::carry_out_sequence_fix(*connection, {}, {.actor = "harness", .reason = ""}, "token_insert");
    const int status = trial.crew().replace(0, SIGTERM);
    trial.expect(status != 0, "the collector that refused ends with an error");
  }
  trial.allow_strange();
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> data_faults() {
  return {
      {"lock and statement timeouts", "none applies to a collector, nothing repeated", 10, 2, timeouts},
      {"dump and restore into a new cluster", "continues from its cursor", 1, 1, dump_and_restore},
      {"TRUNCATE RESTART IDENTITY", "refuses; after the fix nothing is lost", 4, 1, truncate_and_restart}};
}

}  // namespace mailroom::test
