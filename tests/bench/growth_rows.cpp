// What an operator's commands take with ten million tokens behind the cursor.

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "bench/grown_database.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {
namespace {

/// Runs of a command that takes some milliseconds; the figure is their mean.
constexpr int command_runs = 5;

struct Command {
  std::string name;
  std::string meaning;
  std::vector<std::string> words;
  int runs = command_runs;
};

/// Of `status`: nothing takes the tokens that wait.
constexpr int finding_status = 8;

Figures measure_command(Stage& stage, const GrownDatabase& grown, const Command& command) {
  double seconds = 0;
  std::int64_t peak_kib = 0;
  const auto before = stage.ended_cpu_seconds();
  for (int i = 0; i < command.runs; ++i) {
    auto setup = stage.mailroom(grown.name, command.words);
    setup.output = stage.path("command");
    setup.status = finding_status;
    const auto cost = Process(std::move(setup)).wait();
    seconds += cost.seconds;
    peak_kib = std::max(peak_kib, cost.peak_kib);
  }
  const auto server = stage.ended_cpu_seconds() - before;
  return {{.value = seconds / command.runs, .unit = "s"},
          {.name = "server CPU", .value = server / command.runs, .unit = "s"},
          {.name = "memory", .value = static_cast<double>(peak_kib) / 1024, .unit = "MiB"}};
}

/// What the commands are compared with: reading all tokens once.
Figures measure_count(Stage& stage, const GrownDatabase& grown) {
  const auto connection = stage.connect(grown.name);
  const auto start = std::chrono::steady_clock::now();
  connection->run("SELECT count(*) FROM tokens");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return {{.value = took.count(), .unit = "s"}};
}

std::vector<Command> commands() {
  return {{"migrate-verify", "migrate verify", {"migrate", "verify"}},
          {"doctor", "doctor", {"doctor"}},
          {"audit", "audit NAME", {"audit", "user77"}},
          {"stages", "audit --stages", {"audit", "--stages"}},
          {"status", "status", {"status"}},
          {"reconcile",
           "reconcile of all tokens",
           {"reconcile", "--since", fmt::format("{}d", grown_days + 1)},
           1}};
}

}  // namespace

std::vector<Row> growth_rows() {
  constexpr int millions = 10;
  std::vector<Row> rows{
      {.name = "growth/10/count",
       .meaning = "SELECT count(*) of ten million tokens",
       .prepare = [](Stage& stage) { grown_database(stage, millions); },
       .measure = [](Stage& stage) { return measure_count(stage, grown_database(stage, millions)); }}};
  for (const auto& command : commands()) {
    rows.push_back({.name = "growth/10/" + command.name,
                    .meaning = command.meaning + ", with ten million tokens behind the cursor",
                    .prepare = [](Stage& stage) { grown_database(stage, millions); },
                    .measure =
                        [command](Stage& stage) {
                          return measure_command(stage, grown_database(stage, millions), command);
                        }});
  }
  return rows;
}

}  // namespace mailroom::bench
