// Faults of a collector's process: signals.

#include <csignal>

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

Outcome kill_some(Trial& trial, int collectors, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    trial.pause(10, 120);
    trial.crew().replace(trial.draw(0, collectors - 1), SIGKILL);
    trial.allow_repeats(trial.limit());
  }
  // A collector that is still starting has no signal handler yet.
  for (int i = 0; i < collectors; ++i)
    trial.expect(trial.crew().member(i).connected(), "a collector connects");
  return trial.finish(rounds);
}

Outcome kill_at_random(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 4});
  return kill_some(trial, 4, plan.rounds);
}

Outcome kill_in_a_calm_queue(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, calm_queue(2));
  return kill_some(trial, 2, plan.rounds);
}

/// Stops collectors with SIGTERM and SIGINT in turn.
Outcome stop_under_load(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 3});
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(20, 150);
    const int index = trial.draw(0, 2);
    // A collector that is still starting has no signal handler yet.
    trial.expect(trial.crew().member(index).connected(), "a collector connects");
    const int status = trial.crew().replace(index, round % 2 == 0 ? SIGTERM : SIGINT);
    trial.expect(status == 0,
                 "a collector that is asked to stop ends with 0 (" + std::to_string(status) + ")");
  }
  return trial.finish(plan.rounds);
}

Outcome freeze_one(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 3});
  for (int round = 0; round < plan.rounds; ++round) {
    auto& process = trial.crew().member(trial.draw(0, 2)).process();
    process.signal(SIGSTOP);
    trial.pause(100, 600);
    trial.expect(trial.crew().writes_again(), "the others continue");
    process.signal(SIGCONT);
    trial.pause(20, 100);
  }
  return trial.finish(plan.rounds);
}

Outcome eight_collectors(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 8, .writers = 12, .limit = 25});
  for (int round = 0; round < plan.rounds; ++round)
    trial.pause(500, 500);
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> process_faults() {
  return {
      {"no fault, eight collectors", "nothing repeated", 20, 3, eight_collectors, true},
      {"kill -9 at random", "at most one batch per kill is repeated", 200, 12, kill_at_random},
      {"kill -9 in a calm queue", "at most one batch per kill is repeated", 200, 12, kill_in_a_calm_queue},
      {"SIGTERM and SIGINT", "each ends with 0, nothing repeated", 60, 6, stop_under_load},
      {"SIGSTOP of one", "the others continue, nothing repeated", 20, 2, freeze_one}};
}

}  // namespace mailroom::test
