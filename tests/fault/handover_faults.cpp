// Faults of batches that are handed over: of the collector, its database, and the program or server that
// takes them.

#include <csignal>

#include "fault/handover_trial.hpp"
#include "handover/webhook_process.hpp"
#include "support/build_paths.hpp"

namespace mailroom::test {
namespace {

/// The directory of the log of the programs of a trial.
struct Programs {
  TemporaryDirectory directory;
  std::string log = directory.path() / "taken";

  HandoverTrial::Options options(const std::string& mode) const {
    HandoverTrial::Options options;
    options.more = {"--exec", source_directory + "/tests/handover/child.py " + log + " " + mode};
    return options;
  }
};

HandoverTrial::Options posting_to(const WebhookProcess& server) {
  HandoverTrial::Options options;
  options.more = {"--to", server.url()};
  return options;
}

void kill_some_workers(HandoverTrial& trial, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    trial.pause(50, 300);
    trial.replace(trial.draw(0, 2), SIGKILL);
    trial.allow_repeats(trial.claim());
  }
}

void stop_at_random(HandoverTrial& trial, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    trial.pause(50, 200);
    const int index = trial.draw(0, 2);
    trial.expect(trial.consumer(index).connected(), "a collector connects");
    const int status = trial.replace(index, SIGTERM);
    trial.expect(status == 0,
                 "a collector that is asked to stop ends with 0 (" + std::to_string(status) + ")");
  }
}

Outcome programs_alone(Cluster& cluster, const Plan& plan) {
  const Programs programs;
  HandoverTrial trial(cluster, plan, programs.options("ok"), programs.log);
  for (int round = 0; round < plan.rounds; ++round)
    trial.pause(500, 500);
  return trial.finish(plan.rounds);
}

Outcome kill_collectors(Cluster& cluster, const Plan& plan) {
  const Programs programs;
  HandoverTrial trial(cluster, plan, programs.options("ok"), programs.log);
  kill_some_workers(trial, plan.rounds);
  return trial.finish(plan.rounds);
}

Outcome stop_collectors(Cluster& cluster, const Plan& plan) {
  const Programs programs;
  HandoverTrial trial(cluster, plan, programs.options("ok"), programs.log);
  stop_at_random(trial, plan.rounds);
  return trial.finish(plan.rounds);
}

Outcome programs_misbehave(Cluster& cluster, const Plan& plan) {
  const Programs programs;
  HandoverTrial trial(cluster, plan, programs.options("chaos"), programs.log);
  for (int round = 0; round < plan.rounds; ++round)
    trial.pause(500, 500);
  return trial.finish(plan.rounds);
}

Outcome post_and_kill(Cluster& cluster, const Plan& plan) {
  const WebhookProcess server("ok");
  HandoverTrial trial(cluster, plan, posting_to(server), server.taken());
  kill_some_workers(trial, plan.rounds);
  return trial.finish(plan.rounds);
}

Outcome server_misbehaves(Cluster& cluster, const Plan& plan) {
  const WebhookProcess server("chaos");
  HandoverTrial trial(cluster, plan, posting_to(server), server.taken());
  for (int round = 0; round < plan.rounds; ++round)
    trial.pause(500, 500);
  return trial.finish(plan.rounds);
}

/// Each kill leaves what is in flight unanswered, of every collector.
Outcome server_is_killed(Cluster& cluster, const Plan& plan) {
  WebhookProcess server("ok");
  HandoverTrial trial(cluster, plan, posting_to(server), server.taken());
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(300, 800);
    server.kill();
    trial.pause(0, 500);
    server.start_again();
    trial.allow_repeats(3 * trial.claim());
  }
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> handover_faults() {
  return {{"exec: no fault", "nothing repeated", 20, 3, programs_alone},
          {"exec: kill -9 of collectors at random", "at most one claim per kill is repeated", 100, 10,
           kill_collectors},
          {"exec: SIGTERM", "each ends with 0, nothing repeated", 40, 4, stop_collectors},
          {"exec: programs die, hang, flood and lie", "only what was taken and not answered is repeated", 60,
           10, programs_misbehave},
          {"http: kill -9 of collectors at random", "at most one claim per kill is repeated", 100, 10,
           post_and_kill},
          {"http: half, late, huge and wrong answers", "only what was taken and not answered is repeated", 60,
           10, server_misbehaves},
          {"http: kill -9 of the server", "at most what was in flight is repeated", 20, 3, server_is_killed}};
}

}  // namespace mailroom::test
