// Collectors of queues with a rate: over any time they take no more than it allows, and each batch when it
// does.

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fmt/format.h>
#include <limits>

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

constexpr double rate = 50;  ///< tokens per second
constexpr int burst = 10;
constexpr int rate_collectors = 3;
constexpr int batch_limit = burst / 2;
/// How late the promptest tenth of the batches may be: half the time that the rate needs for one. Others also
/// wait for what else the machine does.
constexpr double longest_delay = batch_limit / rate / 2;

/// Three collectors, in batches of half the burst: a bucket that is full while a batch waits wastes the rate.
Trial::Options paced(std::vector<std::string> queues) {
  Trial::Options options{.collectors = rate_collectors, .writers = 0, .limit = batch_limit, .queues = {}};
  for (const auto& queue : queues)
    options.queues[queue] = "";
  if (queues.size() > 1) options.serving = {queues[0], queues[1], fmt::format("{}", fmt::join(queues, ","))};
  return options;
}

void limit_rate(db::Connection& connection, const std::vector<std::string>& queues) {
  const auto paced = fmt::format(R"({{"tokens": {}, "milliseconds": 1000, "burst": {}}})", rate, burst);
  if (queues.size() > 1)
    connection.run("SELECT mailroom_set_budget('provider', $1::jsonb, 'token_insert')", paced);
  const auto definition =
      queues.size() > 1 ? R"({"budget": "provider"})" : fmt::format(R"({{"rate": {}}})", paced);
  for (const auto& queue : queues)
    connection.run("SELECT mailroom_set_queue($1, $2::jsonb, 'token_insert')", queue, definition);
}

void lift_rate(db::Connection& connection, const std::vector<std::string>& queues) {
  for (const auto& queue : queues)
    connection.run("SELECT mailroom_set_queue($1, '{}', 'token_insert')", queue);
}

/// Keeps a backlog of every queue for some seconds.
void keep_backlog(db::Connection& connection, int round) {
  const auto waiting = value<int>(
      connection,
      "SELECT (SELECT coalesce(max(id), 0) FROM tokens) - (SELECT min(s.cursor) FROM jobs j, mailroom_queue_state(j.job_type) s)");
  if (waiting < 300) insert_accounts(connection, 300, fmt::format("round{}-", round));
}

struct Taken {
  int tokens = 0;
  double seconds = 0;  ///< from the first batch to the last
  double excess = 0;   ///< tokens beyond the rate and the burst, in the worst window
  double delay = 0;    ///< of the promptest tenth of the batches, in seconds since the rate allowed them
};

/// Reads when each batch was leased, also by attempts that were abandoned. What a claim may take depends on
/// what was recorded before its time, so the bound holds with both ends of a window included.
Taken taken(db::Connection& connection) {
  Taken result;
  double lowest = std::numeric_limits<double>::infinity();
  double taken_until = 0;  ///< when the rate has paid for what was taken
  std::vector<double> delays;
  for (const auto& row : connection.run(R"(
WITH leases AS (
  SELECT b.claimed_at AS at, mailroom_batch_ids(b.ids, b.ids_mask) + b.skipped_ids AS ids FROM mailroom_batches b
  UNION ALL
  SELECT (e->>'claimed_at')::timestamptz, mailroom_batch_ids(b.ids, b.ids_mask) + b.skipped_ids
  FROM mailroom_batches b, jsonb_array_elements(b.earlier_attempts) e)
SELECT extract(epoch FROM at - min(at) OVER ()), (SELECT sum(upper(g) - lower(g)) FROM unnest(ids) g)
FROM leases WHERE NOT isempty(ids) ORDER BY at)")) {
    result.seconds = row[0].as<double>();
    lowest = std::min(lowest, result.tokens - rate * result.seconds);
    result.tokens += row[1].as<int>();
    result.excess = std::max(result.excess, result.tokens - rate * result.seconds - lowest - burst);
    delays.push_back(result.seconds - (taken_until - (burst - batch_limit) / rate));
    taken_until = std::max(taken_until, result.seconds) + row[1].as<int>() / rate;
  }
  std::ranges::sort(delays);
  if (!delays.empty()) result.delay = delays[delays.size() / 10];
  return result;
}

enum class Kills { no, at_random };

Outcome keep_to_rate(Cluster& cluster, const Plan& plan, const std::vector<std::string>& queues,
                     Kills kills) {
  Trial trial(cluster, plan, paced(queues));
  const auto connection = trial.connect();
  limit_rate(*connection, queues);
  for (int round = 0; round < plan.rounds; ++round) {
    keep_backlog(*connection, round);
    trial.pause(900, 1100);
    if (kills == Kills::no) continue;
    trial.crew().replace(trial.draw(0, rate_collectors - 1), SIGKILL);
    trial.allow_repeats(trial.limit());
  }
  const auto sum = taken(*connection);
  const auto allowed = burst + rate * sum.seconds;
  trial.note(fmt::format(
      "took {} tokens in {:.1f} s, {:.4f} of what the rate allows; the promptest tenth {:.0f} ms late",
      sum.tokens, sum.seconds, sum.tokens / allowed, 1000 * sum.delay));
  trial.count_untimely(static_cast<std::size_t>(std::ceil(sum.excess - 1e-6)));
  if (kills == Kills::no && sum.delay > longest_delay)
    trial.count_untimely(static_cast<std::size_t>(std::ceil(rate * sum.delay)));
  trial.expect(sum.seconds > 0, "several batches are taken");
  lift_rate(*connection, queues);
  for (int i = 0; i < rate_collectors; ++i)
    trial.expect(trial.crew().member(i).connected(), "a collector connects");
  return trial.finish(plan.rounds);
}

auto run_of(std::vector<std::string> queues, Kills kills) {
  return [queues = std::move(queues), kills](Cluster& cluster, const Plan& plan) {
    return keep_to_rate(cluster, plan, queues, kills);
  };
}

}  // namespace

std::vector<Fault> rate_faults() {
  const std::vector<std::string> one{"mailroom"};
  const std::vector<std::string> two{"mailroom", "copy"};
  return {{"rates: no fault", "never above 50/s and a burst of 10, and as soon as they allow", 60, 6,
           run_of(one, Kills::no)},
          {"rates: two queues share one", "the same, by both together", 60, 6, run_of(two, Kills::no)},
          {"rates: kill -9 at random", "never above, at most one batch per kill is repeated", 600, 6,
           run_of(one, Kills::at_random)}};
}

}  // namespace mailroom::test
