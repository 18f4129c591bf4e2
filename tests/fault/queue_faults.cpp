// Faults of several queues over the same tokens: one takes all actions, two take one each. Some collectors
// serve one queue, some several.

#include <algorithm>
#include <csignal>
#include <fmt/format.h>

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

constexpr int collectors = 6;

const std::vector<std::string>& queue_names() {
  static const std::vector<std::string> names{"mailroom", "recovery", "activation"};
  return names;
}

/// The queues of each collector.
const std::vector<std::vector<std::string>>& served() {
  static const std::vector<std::vector<std::string>> all{{"mailroom"},
                                                         {"recovery"},
                                                         {"activation"},
                                                         {"recovery", "activation"},
                                                         {"mailroom", "recovery", "activation"},
                                                         {"activation", "mailroom"}};
  return all;
}

Trial::Options three_queues() {
  Trial::Options options{
      .collectors = collectors,
      .writers = 12,
      .load = {.tolerant = true, .recovers = true, .pause_ms = 40},
      .queues = {{"mailroom", ""}, {"recovery", "password_recovery"}, {"activation", "activation"}}};
  for (const auto& names : served())
    options.serving.push_back(fmt::format("{}", fmt::join(names, ",")));
  return options;
}

/// Few gaps, so that most claims are the usual case.
Trial::Options calm_queues() {
  auto options = three_queues();
  options.writers = 3;
  options.limit = 3;
  options.load.plain = true;
  options.slow_triggers = false;
  return options;
}

void kill(Trial& trial, int index) {
  trial.crew().replace(index, SIGKILL);
  trial.allow_repeats(trial.limit(), served()[static_cast<std::size_t>(index)]);
}

void kill_one(Trial& trial) {
  kill(trial, trial.draw(0, collectors - 1));
}

const std::string& draw_queue(Trial& trial) {
  return queue_names()[static_cast<std::size_t>(trial.draw(0, 2))];
}

/// A collector that is still starting has no signal handler yet, and no session.
void expect_all_connected(Trial& trial, db::Connection& connection) {
  for (int i = 0; i < collectors; ++i)
    trial.expect(trial.crew().member(i).connected(), "a collector connects");
  const auto have_sessions = [&] {
    return value<int>(connection,
                      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                      "AND application_name LIKE 'mailroom collect%'") >= collectors;
  };
  trial.expect(eventually(have_sessions), "each collector has a session");
}

/// Pauses a queue, kills a collector that holds a batch of it more often than not, and counts what the others
/// and its successor lease of it meanwhile.
void pause_one(Trial& trial, db::Connection& connection) {
  const int index = trial.draw(0, collectors - 1);
  const auto& names = served()[static_cast<std::size_t>(index)];
  const auto& queue = names[static_cast<std::size_t>(trial.draw(0, static_cast<int>(names.size()) - 1))];
  trial.expect(trial.crew().member(index).connected(), "a collector connects");
  trial.crew().member(index).process().signal(SIGSTOP);
  connection.run("SELECT mailroom_pause_queue($1, true, 'token_insert')", queue);
  kill(trial, index);
  trial.expect(trial.crew().member(index).connected(), "its successor connects");
  trial.pause(100, 400);
  const auto leased = connection.run(R"(
SELECT coalesce(sum(upper(g) - lower(g)), 0)
FROM mailroom_queues q JOIN mailroom_batches b ON b.queue = q.name AND b.claimed_at > q.paused_at,
     unnest(mailroom_batch_ids(b.ids, b.ids_mask) + b.skipped_ids) g
WHERE q.name = $1)",
                                     queue);
  trial.count_untimely(leased[0][0].as<std::size_t>());
  connection.run("SELECT mailroom_pause_queue($1, false, 'token_insert')", queue);
}

void rewind(Trial& trial, db::Connection& connection, const std::string& queue) {
  Replay replay;
  connection.transact([&](pqxx::work& work) {
    replay.to = db::Connection::execute(work, "SELECT cursor FROM mailroom_lock_queue($1)", queue)[0][0]
                    .as<std::int64_t>();
    replay.after = std::max<std::int64_t>(replay.to - trial.draw(0, 400), 0);
    for (const auto& row : db::Connection::execute(work, R"(
SELECT x FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g,
  generate_series(lower(g), upper(g) - 1) x
WHERE b.queue = $1 AND b.emitted_at IS NOT NULL AND x > $2)",
                                                   queue, replay.after))
      replay.emitted.insert(row[0].as<std::int64_t>());
    db::Connection::execute(work, "SELECT mailroom_rewind($1, $2, 1000000, '{}')", queue, replay.after);
  });
  trial.expect_again(queue, replay);
}

/// All sessions end at once, so the collectors wait for each other's acknowledgements.
void restart(Trial& trial, Cluster& cluster) {
  expect_all_connected(trial, *trial.connect());
  cluster.stop("immediate");
  trial.pause(0, 300);
  cluster.start();
  trial.expect_delivery_again();
  // A collector that has just started does not wait for those that reconnect.
  expect_all_connected(trial, *trial.connect());
}

Outcome only_wait(Trial& trial, const Plan& plan) {
  for (int round = 0; round < plan.rounds; ++round)
    trial.pause(500, 500);
  return trial.finish(plan.rounds);
}

Outcome no_fault(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, three_queues());
  return only_wait(trial, plan);
}

Outcome no_fault_when_calm(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, calm_queues());
  return only_wait(trial, plan);
}

Outcome kill_beside_queues(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, three_queues());
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(10, 120);
    kill_one(trial);
  }
  expect_all_connected(trial, *trial.connect());
  return trial.finish(plan.rounds);
}

Outcome pause_and_kill(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, three_queues());
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(50, 200);
    pause_one(trial, *connection);
  }
  expect_all_connected(trial, *connection);
  return trial.finish(plan.rounds);
}

Outcome rewind_one(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, three_queues());
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(100, 300);
    rewind(trial, *connection, "recovery");
  }
  return trial.finish(plan.rounds);
}

Outcome restart_beside_queues(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, three_queues());
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(500, 2000);
    restart(trial, cluster);
  }
  return trial.finish(plan.rounds);
}

/// One of ten rounds restarts the server, from the third on.
Outcome all_together(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, three_queues());
  auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(20, 200);
    if (round % 10 == 2) {
      restart(trial, cluster);
      connection = trial.connect();
      continue;
    }
    const int kind = trial.draw(0, 9);
    if (kind < 4) kill_one(trial);
    if (kind >= 4 && kind < 7) pause_one(trial, *connection);
    if (kind >= 7) rewind(trial, *connection, draw_queue(trial));
  }
  expect_all_connected(trial, *connection);
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> queue_faults() {
  return {{"queues: no fault", "each emits its actions, nothing repeated", 20, 4, no_fault, true},
          {"queues: no fault, calm", "the same, by the usual claim", 20, 4, no_fault_when_calm},
          {"queues: kill -9 at random", "at most one batch per kill is repeated, of one queue", 200, 15,
           kill_beside_queues},
          {"queues: pauses and kills", "a paused queue leases nothing, one batch per kill", 60, 6,
           pause_and_kill},
          {"queues: rewinds of one", "repeats what the rewind covers, in its queue only", 60, 8, rewind_one},
          {"queues: stop -m immediate and start", "nothing repeated, delivery resumes", 12, 1,
           restart_beside_queues},
          {"queues: all of it", "one batch per kill, and what a rewind covers", 100, 8, all_together}};
}

}  // namespace mailroom::test
