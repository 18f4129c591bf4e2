// What the same work costs with one, ten and thirty million tokens behind the cursor.

#include <fmt/format.h>
#include <fstream>

#include "base/json.hpp"
#include "bench/collected.hpp"
#include "bench/grown_database.hpp"
#include "bench/row.hpp"
#include "support/subprocess.hpp"

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

struct GrownDrain {
  int limit;
  std::int64_t claims;  ///< before scaling
};

/// The cost of a claim with its batch, from the start of the collector to its end.
Figures measure_drain(Stage& stage, const GrownDatabase& grown, const GrownDrain& drain) {
  forget_new_batches(stage, grown);
  const auto claims = std::min(stage.scaled(drain.claims), grown.due / drain.limit);
  auto setup =
      stage.mailroom(grown.name, {"collect", "--once", "-q", "--batch-limit", std::to_string(drain.limit),
                                  "--max-batches", std::to_string(claims)});
  setup.output = stage.path("collected0");
  const auto before = stage.ended_cpu_seconds();
  const auto cost = Process(setup).wait();
  const auto cpu = stage.ended_cpu_seconds() - before + cost.cpu_seconds;
  require_tokens({setup.output}, claims * drain.limit);
  const auto each = 1000 / static_cast<double>(claims);
  return {{.value = cost.seconds * each, .unit = "ms/claim"},
          {.name = "CPU", .value = cpu * each, .unit = "ms/claim"}};
}

/// What prune removes next: a slice of the oldest tokens, with their records.
Figures measure_prune(Stage& stage, const GrownDatabase& grown) {
  const auto connection = stage.connect(grown.name);
  const auto slice = grown.emitted / 40 > 50'000 ? 50'000 : grown.emitted / 40;
  const auto age =
      connection
          ->run(
              "SELECT extract(epoch FROM now())::bigint - t.expires_at FROM tokens t WHERE t.id = (SELECT min(id) FROM tokens) + $1",
              slice)[0][0]
          .as<std::int64_t>();
  const auto prune = [&](std::int64_t& removed) {
    auto setup =
        stage.mailroom(grown.name, {"prune", "--yes", "-o", "json", "--older-than", fmt::format("{}s", age)});
    setup.output = stage.path("pruned");
    const auto before = stage.ended_cpu_seconds();
    const auto cost = Process(setup).wait();
    removed = parse_json(test::read_file(setup.output)).at("tokens");
    return std::pair(cost.seconds, stage.ended_cpu_seconds() - before + cost.cpu_seconds);
  };
  std::int64_t removed = 0;
  std::int64_t few = 0;
  const auto [seconds, cpu] = prune(removed);
  const auto [rest_seconds, rest_cpu] = prune(few);
  if (removed < slice / 2) throw std::runtime_error("there was too little to prune");
  const auto each = 1'000'000 / static_cast<double>(removed - few);
  return {{.value = (seconds - rest_seconds) * each, .unit = "µs/token"},
          {.name = "CPU", .value = (cpu - rest_cpu) * each, .unit = "µs/token"},
          {.name = "of nothing", .value = rest_seconds, .unit = "s"},
          {.name = "of nothing CPU", .value = rest_cpu, .unit = "s"}};
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

using Measure = std::function<Figures(Stage&, const GrownDatabase&)>;

Row growth_row(int millions, const std::string& name, const std::string& meaning, const Measure& measure) {
  return {.name = fmt::format("growth/{}/{}", millions, name),
          .meaning = fmt::format("{}, with {} million tokens behind the cursor", meaning, millions),
          .prepare = [millions](Stage& stage) { grown_database(stage, millions); },
          .measure = [=](Stage& stage) { return measure(stage, grown_database(stage, millions)); },
          // A quarter of the tokens is old: so many slices of it are there to be pruned.
          .max_runs = 5,
          .only_by_name = millions != 10};
}

}  // namespace

std::vector<Row> growth_rows() {
  std::vector<Row> rows;
  for (const int millions : {1, 10, 30}) {
    for (const auto& command : commands()) {
      rows.push_back(growth_row(
          millions, command.name, command.meaning,
          [command](Stage& stage, const auto& grown) { return measure_command(stage, grown, command); }));
    }
    for (const GrownDrain drain : {GrownDrain{1, 1'000}, GrownDrain{10, 2'000}, GrownDrain{10'000, 20}}) {
      rows.push_back(growth_row(
          millions, fmt::format("drain/{}", drain.limit),
          fmt::format("claims of one collector at batch limit {}", drain.limit),
          [drain](Stage& stage, const auto& grown) { return measure_drain(stage, grown, drain); }));
    }
    rows.push_back(growth_row(millions, "prune", "a token that prune removes", measure_prune));
  }
  return rows;
}

}  // namespace mailroom::bench
