// Faults of the reader of a collector's output.

#include <csignal>
#include <fmt/format.h>
#include <thread>
#include <unistd.h>

#include "fault/trial.hpp"
#include "support/build_paths.hpp"
#include "support/named_pipe.hpp"

namespace mailroom::test {
namespace {

constexpr int output_closed = 10;

std::vector<std::string> options(int limit) {
  return {"--format", "jsonl", "--batch-limit", std::to_string(limit), "--batch-timeout", "100ms"};
}

/// True if the process has one session, which is idle without an open transaction.
bool is_idle(db::Connection& connection, int pid) {
  const auto rows = connection.run(
      "SELECT state, xact_start IS NULL FROM pg_stat_activity WHERE application_name LIKE '%:' || $1::text",
      pid);
  return rows.size() == 1 && std::string(rows[0][0].c_str()) == "idle" && rows[0][1].as<bool>();
}

/// The reader pauses, then reads a little at a time. Meanwhile no transaction may be open.
Outcome slow_reader(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 1});
  const auto connection = trial.connect();
  NamedPipe pipe;
  TestCollector slow(trial.conninfo(), options(50), {}, pipe.path());
  trial.expect(slow.connected(), "a collector connects");
  std::string text;
  int waits = 0;
  for (int round = 0; round < plan.rounds; ++round) {
    // The other collector takes its share of them.
    int times = 0;
    const bool filled = eventually([&] {
      insert_accounts(*connection, 2000, fmt::format("slow{}-{}-", round, times++));
      return pipe.is_full();
    });
    trial.expect(filled, "the pipe gets full");
    for (int i = 0; i < 5; ++i) {
      trial.pause(100, 200);
      if (!pipe.is_full()) continue;
      ++waits;
      trial.expect(is_idle(*connection, slow.process().pid()), "no transaction waits for the reader");
    }
    for (int i = 0; i < 20; ++i)
      text += pipe.take(3000);
  }
  trial.expect(waits >= plan.rounds, "the collector waits for its reader");
  trial.note(fmt::format("waited {} times for its reader, each time with no transaction open", waits));
  trial.stop_writers();
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    while (!ended) {
      text += pipe.take(65536);
      std::this_thread::sleep_for(Milliseconds(1));
    }
  });
  trial.expect(eventually([&] { return is_drained(*connection); }), "the queue drains once all is read");
  const int status = slow.stop();
  trial.expect(status == 0, "the collector ends with 0");
  ended = true;
  reader.join();
  text += pipe.take(1U << 20U);
  trial.crew().keep(text);
  return trial.finish(plan.rounds);
}

/// Unread bytes in a pipe are lost with its reader, so the reader empties the pipe before it closes it.
Outcome reader_gone(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 2});
  for (int round = 0; round < plan.rounds; ++round) {
    NamedPipe pipe;
    TestCollector left(trial.conninfo(), options(10), {}, pipe.path());
    trial.expect(left.connected(), "a collector connects");
    std::string text;
    const bool read = eventually([&] { return !(text += pipe.take(65536)).empty(); });
    trial.expect(read, "the collector writes");
    left.process().signal(SIGSTOP);
    trial.expect(eventually([&] { return left.process().is_stopped(); }), "the collector stands still");
    text += pipe.take(1U << 20U);
    pipe.leave();
    left.process().signal(SIGCONT);
    const int status = left.process().wait();
    trial.expect(status == output_closed, fmt::format("it ends with 10 ({})", status));
    trial.crew().keep(text);
    trial.allow_repeats(trial.limit());
  }
  return trial.finish(plan.rounds);
}

Outcome full_device(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 2});
  for (int round = 0; round < plan.rounds; ++round) {
    TestCollector full(trial.conninfo(), options(10), {}, "/dev/full");
    const int status = full.process().wait(std::chrono::seconds(30));
    trial.expect(status == output_closed, fmt::format("it ends with 10 ({})", status));
  }
  return trial.finish(plan.rounds);
}

Outcome closed_output(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 2});
  TemporaryDirectory directory;
  for (int round = 0; round < plan.rounds; ++round) {
    std::vector<std::string> command{"/bin/sh", "-c", "exec \"$0\" \"$@\" >&-", mailroom_binary, "collect"};
    const auto words = options(10);
    command.insert(command.end(), words.begin(), words.end());
    Subprocess closed(command,
                      {{"MAILROOM_DATABASE_URL", trial.conninfo()}, {"MAILROOM_SECRET_KEY", test_key}},
                      directory.path() / "stdout", directory.path() / "stderr");
    const int status = closed.wait(std::chrono::seconds(30));
    trial.expect(status == output_closed, fmt::format("it ends with 10 ({})", status));
  }
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> output_faults() {
  return {{"reader slow", "no transaction waits for it, nothing repeated", 6, 1, slow_reader},
          {"reader gone", "ends with 10, its batch is repeated", 12, 3, reader_gone},
          {"stdout closed", "ends with 10, nothing repeated", 12, 3, closed_output},
          {"stdout on /dev/full", "ends with 10, nothing repeated", 12, 3, full_device}};
}

}  // namespace mailroom::test
