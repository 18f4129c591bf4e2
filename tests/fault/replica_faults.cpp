// A streaming standby replaces its primary while collectors work.

#include <algorithm>
#include <fmt/format.h>

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

Outcome promote_once(const Plan& plan, std::uint64_t round) {
  Cluster primary({.tcp = false, .settings = {"recovery_init_sync_method = syncfs"}});
  Cluster standby = Cluster::standby_of(primary);
  const auto reach = fmt::format("host={},{} port={},{} user=postgres target_session_attrs=read-write",
                                 primary.host(), standby.host(), primary.port(), standby.port());
  Plan own = plan;
  own.seed += round;
  Trial trial(primary, own, {.collectors = 3, .collectors_reach = reach, .writers_too = true});
  trial.pause(1500, 2500);
  // The standby lacks WAL that it was not sent; its cursor and tokens are consistent.
  primary.stop("immediate");
  standby.promote();
  trial.move_to(standby);
  trial.expect_delivery_again();
  trial.allow_strange();
  trial.allow_repeats(trial.limit() * 3);
  trial.pause(1000, 1500);
  return trial.finish(1);
}

Outcome promote(Cluster& /*cluster*/, const Plan& plan) {
  Outcome sum;
  for (int round = 0; round < plan.rounds; ++round) {
    const auto outcome = promote_once(plan, static_cast<std::uint64_t>(round));
    ++sum.rounds;
    sum.tally += outcome.tally;
    sum.longest_gap =
        std::max(sum.longest_gap.value_or(Milliseconds{}), outcome.longest_gap.value_or(Milliseconds{}));
    sum.notes.insert(sum.notes.end(), outcome.notes.begin(), outcome.notes.end());
    sum.problems.insert(sum.problems.end(), outcome.problems.begin(), outcome.problems.end());
  }
  sum.notes.push_back(fmt::format("{} emitted that the standby lacked", sum.tally.strange));
  return sum;
}

}  // namespace

std::vector<Fault> replica_faults() {
  return {{"standby promoted", "nothing lost of what it has, delivery resumes", 3, 0, promote}};
}

}  // namespace mailroom::test
