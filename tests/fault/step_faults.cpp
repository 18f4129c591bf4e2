// kill -9 of a collector between each two steps of a claim, by name.

#include <csignal>
#include <fmt/format.h>

#include "fault/step_collector.hpp"
#include "fault/trial.hpp"
#include "queue/pg_queue_session.hpp"

namespace mailroom::test {
namespace {

/// Runs a collector that dies at the `nth` time it comes to `step`; its output is the crew's.
int run_to_death(Trial& trial, const Step& step, int nth) {
  TemporaryFolder folder;
  const std::string out = folder.path() / "stdout";
  Subprocess process(
      {"/proc/self/exe", "--step-collector", step.name, std::to_string(nth), std::to_string(trial.limit())},
      {{"MAILROOM_DATABASE_URL", trial.conninfo()}}, out, folder.path() / "stderr");
  const int status = process.wait(std::chrono::seconds(20));
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

bool is_stopped(pid_t pid) {
  const auto status = read_file(fmt::format("/proc/{}/stat", pid));
  return status.find(") T ") != std::string::npos;
}

/// Lets a collector write a batch, ends its session before it can acknowledge, and lets it go on. Its log.
std::string end_session_after_write(Trial& trial, Connection& connection) {
  TemporaryFolder folder;
  const std::string out = folder.path() / "stdout";
  const std::string log = folder.path() / "stderr";
  Subprocess process({"/proc/self/exe", "--step-collector", "stop after the write",
                      std::to_string(trial.draw(1, 4)), std::to_string(trial.limit())},
                     {{"MAILROOM_DATABASE_URL", trial.conninfo()}}, out, log);
  trial.expect(eventually([&] { return is_stopped(process.pid()); }), "the collector has written");
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
  trial.expect(eventually([&] { return count(read_file(log), " connected\n") == 2; }), "it connects again");
  trial.pause(100, 300);
  process.signal(SIGTERM);
  const int status = process.wait();
  trial.expect(status == 0, fmt::format("the collector ends with 0 ({})", status));
  trial.crew().keep(read_file(out));
  return read_file(log);
}

/// Beside another that is connected, which takes over at once, or alone.
Outcome session_ends_after_write(Cluster& cluster, const Plan& plan, bool alone) {
  Trial trial(cluster, plan, {.collectors = alone ? 0 : 1});
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    const auto log = end_session_after_write(trial, *connection);
    const bool warned = count(log, "it may have gone out twice") > 0;
    trial.expect(warned != alone,
                 alone ? "no batch is taken over" : "the collector warns that it was taken over");
    if (!alone) trial.allow_repeats(trial.limit());
  }
  if (alone) trial.crew().hire(trial.conninfo());
  auto outcome = trial.finish(plan.rounds);
  // Between two rounds nobody collects.
  if (alone) outcome.longest_gap.reset();
  if (!alone && outcome.tally.repeated < static_cast<std::size_t>(plan.rounds))
    outcome.problems.emplace_back("not so: each batch that was taken over is repeated");
  return outcome;
}

std::unique_ptr<PgQueueSession> attach(const Trial& trial) {
  return std::make_unique<PgQueueSession>(trial.conninfo(), "mailroom", "token_insert", [](Connection&) {});
}

/// Takes a batch of a few new tokens; its number.
std::int64_t claim_something(Trial& trial, PgQueueSession& session, Connection& connection, int round) {
  for (int i = 0; i < 10; ++i) {
    insert_accounts(connection, 3, fmt::format("idle{}-{}-", round, i));
    const auto lease = session.claim({.limit = trial.limit(), .partial = true}).lease;
    if (lease) return lease->batch;
  }
  throw std::runtime_error("the others always come first");
}

/// Takes the batch of a few new tokens and leaves it; the process id of the session that did.
int claim_and_leave(Trial& trial, Connection& connection, int round) {
  const auto session = attach(trial);
  const auto batch = claim_something(trial, *session, connection, round);
  return connection.run("SELECT collector FROM mailroom_batches WHERE id = $1", batch)[0][0].as<int>();
}

/// A session that ends when others have claimed after it, as calmly as can be: nothing but its age tells them
/// of its batch.
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
    trial.expect(eventually(is_behind), "the others go on");
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

/// From the end of a collector's session until another has its batch, in a queue where nothing else happens
/// and nothing notifies.
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
  trial.expect(slowest <= Milliseconds(1000), "a batch is taken over within 1 s");
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> step_faults() {
  std::vector<Fault> faults;
  for (const auto& step : steps()) {
    faults.push_back(
        {"killed " + step.name, step.may_repeat ? "at most one batch a kill is repeated" : "nothing repeated",
         20, 1, [step](Cluster& cluster, const Plan& plan) { return kill_at_step(cluster, plan, step); }});
  }
  faults.push_back({"session ended behind others", "its batch is taken over, nothing repeated", 40, 4,
                    ends_behind_others});
  faults.push_back(
      {"session ended after the write, beside one", "one batch a session is repeated", 20, 2,
       [](auto& cluster, const auto& plan) { return session_ends_after_write(cluster, plan, false); }});
  faults.push_back(
      {"session ended after the write, alone", "nothing repeated", 20, 2,
       [](auto& cluster, const auto& plan) { return session_ends_after_write(cluster, plan, true); }});
  faults.push_back(
      {"take-over in an idle queue", "within 1 s of the session's end", 10, 2, take_over_when_idle});
  return faults;
}

}  // namespace mailroom::test
