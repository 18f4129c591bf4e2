// Faults of the whole server.

#include <algorithm>
#include <fmt/format.h>

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

const std::string quick_recovery = "recovery_init_sync_method = syncfs";

/// All sessions end at once, so the collectors wait for each other's acknowledgements.
Outcome restart_in_a_loop(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 3});
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(500, 2000);
    cluster.stop("immediate");
    trial.pause(0, 300);
    cluster.start();
    trial.expect_delivery_again();
  }
  return trial.finish(plan.rounds);
}

bool all_say(Trial& trial, const std::string& words, int times) {
  return eventually([&] {
    const auto logs = trial.crew().logs();
    return std::all_of(logs.begin(), logs.end(), [&](const auto& log) { return count(log, words) >= times; });
  });
}

/// The connection string also accepts a standby, because it does not require a writable server.
Outcome demote_and_promote(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 3});
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(300, 900);
    cluster.demote();
    trial.expect(all_say(trial, "connect to the primary", round + 1),
                 "each collector is refused, and logs the reason");
    cluster.promote();
    trial.expect_delivery_again();
  }
  return trial.finish(plan.rounds);
}

/// As providers do when a disk is nearly full. Existing sessions continue; libpq refuses new ones.
Outcome read_only_by_default(Cluster& cluster, const Plan& plan) {
  const auto reach = fmt::format("host={} port={} user=postgres target_session_attrs=read-write",
                                 cluster.host(), cluster.port());
  Trial trial(cluster, plan, {.collectors = 3, .collectors_reach = reach});
  const auto connection = trial.connect();
  const auto name = value<std::string>(*connection, "SELECT current_database()");
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(300, 900);
    connection->run(fmt::format("ALTER DATABASE {} SET default_transaction_read_only = on", name));
    connection->run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'mailroom%'");
    trial.allow_repeats(trial.limit() * 3);
    trial.expect(all_say(trial, "session is read-only", round + 1), "each collector is refused");
    connection->run(fmt::format("ALTER DATABASE {} RESET default_transaction_read_only", name));
    trial.expect_delivery_again();
  }
  return trial.finish(plan.rounds);
}

/// Fills the disk until the server panics. A replication slot keeps all segments, so that none is reused.
void fill_disk(const Cluster& cluster) {
  db::Connection connection(cluster.conninfo("postgres"), "harness");
  connection.run("SELECT pg_create_physical_replication_slot('keeper', true)");
  cluster.fill_wal();
  try {
    for (int i = 0; i < 100; ++i)
      connection.run("SELECT pg_logical_emit_message(false, 'fill', repeat('x', 500000)), pg_switch_wal()");
  } catch (const db::ConnectionLost&) {
    return;
  }
  throw std::runtime_error("the disk does not fill");
}

/// The server panics, and does not restart until there is space again.
Outcome disk_full(Cluster& /*cluster*/, const Plan& plan) {
  Cluster own({.settings = {quick_recovery, "max_wal_size = 4MB", "min_wal_size = 2MB"}, .wal_mb = 24});
  Trial trial(own, plan, {.collectors = 3});
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(500, 1500);
    fill_disk(own);
    trial.pause(300, 1500);
    trial.expect(!own.accepts(), "the server does not come back while the disk is full");
    own.free_wal();
    own.start_if_stopped();
    trial.expect_delivery_again();
    trial.allow_repeats(trial.limit());
    trial.connect()->run("SELECT pg_drop_replication_slot('keeper')");
  }
  trial.expect(count(own.log(), "No space left on device") >= plan.rounds, "the disk was full");
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> server_faults() {
  return {{"stop -m immediate and start", "nothing repeated, delivery resumes", 12, 1, restart_in_a_loop},
          {"demoted to a standby, promoted again", "waits, nothing repeated, delivery resumes", 6, 1,
           demote_and_promote},
          {"read-only by default, sessions ended", "one batch per session may repeat, delivery resumes", 6, 1,
           read_only_by_default},
          {"disk of the write-ahead log full", "at most one batch per crash repeated, delivery resumes", 5, 1,
           disk_full}};
}

}  // namespace mailroom::test
