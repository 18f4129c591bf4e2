// Faults of a session, its statements and its notifications, while the server runs.

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

/// Ends a collector's session or, one time in four, a writer's. Returns true if it was a collector's.
bool terminate_one(Trial& trial, db::Connection& connection) {
  const bool collector = trial.draw(0, 3) > 0;
  const auto rows = connection.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
      "AND pid <> pg_backend_pid() AND application_name LIKE $1 ORDER BY random() LIMIT 1",
      collector ? "mailroom%" : "writer%");
  return collector && !rows.empty();
}

/// After a session ends, another collector takes its batch over, or its own collector in a new session.
Outcome terminate_among_several(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 3});
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(20, 200);
    if (terminate_one(trial, *connection)) trial.allow_repeats(trial.limit());
  }
  return trial.finish(plan.rounds);
}

Outcome terminate_the_only_one(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 1});
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(20, 400);
    terminate_one(trial, *connection);
  }
  return trial.finish(plan.rounds);
}

Outcome without_notification(Cluster& cluster, const Plan& plan) {
  Trial trial(
      cluster, plan,
      {.collectors = 2, .load = {.prepares = true, .tolerant = true, .pause_ms = 20}, .silent = true});
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(1000, 1000);
    trial.expect(trial.crew().writes_again(), "polls find tokens");
  }
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> session_faults() {
  return {{"pg_terminate_backend, three collectors", "at most one batch per session is repeated", 80, 10,
           terminate_among_several},
          {"pg_terminate_backend, one collector", "nothing repeated", 30, 2, terminate_the_only_one},
          {"no notification, prepared transactions", "polling finds all, nothing repeated", 15, 2,
           without_notification}};
}

}  // namespace mailroom::test
