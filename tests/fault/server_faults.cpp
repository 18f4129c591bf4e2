// What befalls the server as a whole.

#include <algorithm>

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

constexpr Milliseconds recovery_limit{2000};

Milliseconds since(TimePoint start) {
  return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start);
}

Outcome restart_in_a_loop(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 3});
  Milliseconds slowest{};
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(500, 2000);
    cluster.stop("immediate");
    trial.pause(0, 300);
    cluster.start();
    const auto accepts = std::chrono::steady_clock::now();
    trial.expect(trial.crew().writes_again(), "delivery goes on after a restart");
    slowest = std::max(slowest, since(accepts));
    trial.allow_repeats(trial.limit());
  }
  trial.expect(slowest <= recovery_limit, "delivery goes on within 2 s");
  trial.note("delivery again at most " + std::to_string(slowest.count()) + " ms after the server accepts");
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> server_faults() {
  return {{"stop -m immediate and start", "at most one batch a crash repeated, on again within 2 s", 12, 2,
           restart_in_a_loop}};
}

}  // namespace mailroom::test
