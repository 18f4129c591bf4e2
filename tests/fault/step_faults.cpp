// kill -9 of a collector between any two steps of a claim.

#include <csignal>
#include <fmt/format.h>

#include "claim/pg_queue_session.hpp"
#include "fault/step_collector.hpp"
#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

/// Runs a collector that dies the `nth` time it reaches `step`; adds its output to the crew's.
int run_to_death(Trial& trial, const Step& step, int nth) {
  TemporaryDirectory directory;
  const std::string out = directory.path() / "stdout";
  Subprocess process(
      {"/proc/self/exe", "--step-collector", step.name, std::to_string(nth), std::to_string(trial.limit())},
      {{"MAILROOM_DATABASE_URL", trial.conninfo()}}, out, directory.path() / "stderr");
  const int status = process.wait();
  trial.crew().keep(read_file(out));
  return status;
}

Outcome kill_at_step(Cluster& cluster, const Plan& plan, const Step& step) {
  Trial trial(cluster, plan, {.collectors = 2});
  for (int round = 0; round < plan.rounds; ++round) {
    const int status = run_to_death(trial, step, trial.draw(1, 6));
    trial.expect(status == 128 + step.signal,
                 "the collector dies at the step (" + std::to_string(status) + ")");
    if (step.may_repeat) trial.allow_repeats(trial.limit());
  }
  return trial.finish(plan.rounds);
}

/// Lets a collector write a batch, ends its session before it can acknowledge, and resumes it. Returns its
/// log.
std::string end_session_after_write(Trial& trial, db::Connection& connection) {
  TemporaryDirectory directory;
  const std::string out = directory.path() / "stdout";
  const std::string log = directory.path() / "stderr";
  Subprocess process({"/proc/self/exe", "--step-collector", "stop after the write",
                      std::to_string(trial.draw(1, 4)), std::to_string(trial.limit())},
                     {{"MAILROOM_DATABASE_URL", trial.conninfo()}}, out, log);
  trial.expect(eventually([&] { return process.is_stopped(); }), "the collector has written");
  const auto backend =
      connection
          .run("SELECT pid FROM pg_stat_activity WHERE application_name LIKE '%:' || $1::text",
               process.pid())[0][0]
          .as<int>();
  connection.run("SELECT pg_terminate_backend($1, 5000)", backend);
  if (trial.crew().size() > 0) {
    const auto taken = [&] {
      return connection
          .run("SELECT FROM mailroom_batches WHERE collector = $1 AND emitted_at IS NULL", backend)
          .empty();
    };
    trial.expect(eventually(taken), "the other collector takes the batch over");
  }
  process.signal(SIGCONT);
  trial.expect(eventually([&] { return count(read_file(log), " connected\n") == 2; }), "it reconnects");
  trial.pause(100, 300);
  process.signal(SIGTERM);
  const int status = process.wait();
  trial.expect(status == 0, fmt::format("the collector ends with 0 ({})", status));
  trial.crew().keep(read_file(out));
  return read_file(log);
}

/// Alone, or beside another connected collector, which takes the batch over at once.
Outcome session_ends_after_write(Cluster& cluster, const Plan& plan, bool alone) {
  Trial trial(cluster, plan, {.collectors = alone ? 0 : 1});
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    const auto log = end_session_after_write(trial, *connection);
    const bool warned = count(log, "it may have been emitted twice") > 0;
    trial.expect(warned != alone,
                 alone ? "no batch is taken over" : "the collector warns that it was taken over");
    if (!alone) trial.allow_repeats(trial.limit());
  }
  if (alone) trial.crew().hire(trial.conninfo());
  auto outcome = trial.finish(plan.rounds);
  // Between two rounds no collector runs.
  if (alone) outcome.longest_gap.reset();
  if (!alone && outcome.tally.repeated < static_cast<std::size_t>(plan.rounds))
    outcome.problems.emplace_back("not so: each batch that was taken over is repeated");
  return outcome;
}

std::unique_ptr<claim::PgQueueSession> attach(const Trial& trial) {
  return std::make_unique<claim::PgQueueSession>(
      claim::PgQueueSession::Setup{trial.conninfo(), {"mailroom"}, "token_insert", [](db::Connection&) {}});
}

/// Claims a batch of a few new tokens; returns its number.
std::int64_t claim_something(Trial& trial, claim::PgQueueSession& session, db::Connection& connection,
                             int round) {
  for (int i = 0; i < 100; ++i) {
    insert_accounts(connection, 3, fmt::format("idle{}-{}-", round, i));
    const auto lease = session.claim({.limit = trial.limit(), .partial = true}).lease;
    if (lease) return lease->batch;
  }
  throw std::runtime_error("the others always come first");
}

/// Claims a batch of a few new tokens and ends the session; returns the backend pid of that session.
int claim_and_leave(Trial& trial, db::Connection& connection, int round) {
  const auto session = attach(trial);
  const auto batch = claim_something(trial, *session, connection, round);
  return connection.run("SELECT collector FROM mailroom_batches WHERE id = $1", batch)[0][0].as<int>();
}

/// A session ends after others have claimed later batches in a calm queue: its batch shows only by its age.
Outcome ends_behind_others(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, calm_queue(3));
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    auto session = attach(trial);
    const auto batch = claim_something(trial, *session, *connection, round);
    const auto is_behind = [&] {
      return connection->run("SELECT FROM mailroom_batches WHERE id > $1 AND emitted_at IS NOT NULL", batch)
                 .size() >= 5;
    };
    trial.expect(eventually(is_behind), "the others continue");
    session.reset();
    const auto taken = [&] {
      return !connection->run("SELECT FROM mailroom_batches WHERE id = $1 AND emitted_at IS NOT NULL", batch)
                  .empty();
    };
    const bool is_taken = eventually(taken);
    trial.expect(is_taken, "another collector takes the batch over");
    if (!is_taken) trial.give_up();
  }
  return trial.finish(plan.rounds);
}

/// Measures the time from the end of a session until another collector has its batch, in an idle queue
/// without notifications.
Outcome take_over_when_idle(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 2, .writers = 0, .silent = true, .slow_triggers = false});
  const auto connection = trial.connect();
  Milliseconds slowest{};
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(0, 1000);
    const int holder = claim_and_leave(trial, *connection, round);
    const auto ended = [&] {
      return connection->run("SELECT FROM pg_stat_activity WHERE pid = $1", holder).empty();
    };
    trial.expect(eventually(ended), "the session ends");
    const auto start = std::chrono::steady_clock::now();
    const auto taken = [&] {
      return connection
          ->run("SELECT FROM mailroom_batches WHERE collector = $1 AND emitted_at IS NULL", holder)
          .empty();
    };
    trial.expect(eventually(taken), "another collector takes the batch over");
    slowest =
        std::max(slowest, std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start));
  }
  trial.note(fmt::format("taken over at most {} ms after the session ended", slowest.count()));
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> step_faults() {
  std::vector<Fault> faults;
  for (const auto& step : steps()) {
    faults.push_back(
        {"killed " + step.name,
         step.may_repeat ? "at most one batch per kill is repeated" : "nothing repeated", 20, 1,
         [step](Cluster& cluster, const Plan& plan) { return kill_at_step(cluster, plan, step); }});
  }
  faults.push_back({"session ended behind others", "its batch is taken over, nothing repeated", 40, 4,
                    ends_behind_others});
  faults.push_back(
      {"session ended after the write, beside one", "one batch per session is repeated", 20, 2,
       [](auto& cluster, const auto& plan) { return session_ends_after_write(cluster, plan, false); }});
  faults.push_back(
      {"session ended after the write, alone", "nothing repeated", 20, 2,
       [](auto& cluster, const auto& plan) { return session_ends_after_write(cluster, plan, true); }});
  faults.push_back({"take-over in an idle queue", "its batch is taken over, nothing repeated", 10, 2,
                    take_over_when_idle});
  return faults;
}

}  // namespace mailroom::test
