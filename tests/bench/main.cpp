// bench_harness: measures mailroom on its own PostgreSQL server, and prints medians with their spread.

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <optional>

#include "bench/comparison.hpp"
#include "bench/latency.hpp"
#include "bench/report.hpp"
#include "bench/rival_rows.hpp"

namespace mailroom::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  std::string binary;
  std::vector<std::string> only;
  int runs = 5;
  double scale = 1;
  double minutes = 30;
  double flush_ms = 0;
  std::string json;
  std::string rivals;
  bool brokers = false;
  bool list = false;
};

std::vector<Row> all_rows(const BenchOptions& options) {
  std::vector<Row> all;
  for (const auto& group :
       {drain_rows(), queue_rows(), latency_rows(), producer_rows(), memory_rows(), verify_rows(),
        migrate_rows(), idle_rows(), send_rows(), message_rows(), bounce_rows(), growth_rows(), prune_rows(),
        submission_rows(), options.brokers ? broker_rows() : std::vector<Row>()})
    all.insert(all.end(), group.begin(), group.end());
  if (options.rivals.empty()) return all;
  for (const auto& group : {pgq_rows(), node_rows(options.rivals)})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

/// `drain` selects drain/10 and drain/10/old; `drain/1` does not select drain/10.
bool is_wanted(const Row& row, const BenchOptions& options) {
  if (options.only.empty()) return options.list || !row.only_by_name;
  return std::any_of(options.only.begin(), options.only.end(), [&](const auto& part) {
    return row.name == part || row.name.rfind(part + "/", 0) == 0;
  });
}

std::vector<Row> wanted_rows(const BenchOptions& options) {
  std::vector<Row> wanted;
  for (auto& row : all_rows(options)) {
    if (is_wanted(row, options)) wanted.push_back(std::move(row));
  }
  if (wanted.empty()) throw std::runtime_error("no row has such a name: --list names them all");
  return wanted;
}

/// A row that has failed is not run again.
class Session {
 public:
  Session(Stage& stage, std::vector<Row> rows) : stage_(stage), rows_(std::move(rows)) {}

  void prepare() {
    for (auto& row : rows_)
      attempt(row, "preparing", [&] { row.prepare(stage_); });
  }

  /// Starts no row after `until`.
  void run(int number, Clock::time_point until) {
    for (auto& row : rows_) {
      if (number > row.max_runs || Clock::now() > until) continue;
      attempt(row, fmt::format("run {}", number), [&] { results_.add(row.name, row.measure(stage_)); });
    }
  }

  const Results& results() const { return results_; }

 private:
  template <typename Body>
  void attempt(Row& row, const std::string& what, const Body& body) {
    if (row.max_runs == 0) return;
    const auto start = Clock::now();
    try {
      body();
    } catch (const std::exception& error) {
      results_.fail(row.name, error.what());
      row.max_runs = 0;
    }
    const std::chrono::duration<double> took = Clock::now() - start;
    fmt::print(stderr, "{}: {} took {:.1f} s\n", what, row.name, took.count());
  }

  Stage& stage_;
  std::vector<Row> rows_;
  Results results_;
};

int run_bench(const BenchOptions& options) {
  const auto rows = wanted_rows(options);
  if (options.list) {
    for (const auto& row : rows)
      fmt::print("{:<34} {}\n", row.name, row.meaning);
    return 0;
  }
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double, std::ratio<60>>(options.minutes));
  test::stop_clusters_on_signals();
  Stage stage({.binary = options.binary, .scale = options.scale});
  auto machine = describe_machine(stage);
  machine.flush_ms = options.flush_ms;
  Session session(stage, rows);
  session.prepare();
  if (options.flush_ms > 0) stage.slow_flushes(options.flush_ms);
  for (int number = 1; number <= options.runs; ++number)
    session.run(number, until);
  machine.load_after = load_averages();
  fmt::print("{}", render_text(session.results(), machine));
  if (!options.json.empty())
    std::ofstream(options.json) << render_json(session.results(), machine, options.scale);
  return session.results().failures().empty() ? 0 : 1;
}

/// Not the harness, but a program that it measures, or what scripts/bench --against prints; nullopt: the
/// harness.
std::optional<int> run_as_program(const std::vector<std::string>& words) {
  if (words == std::vector<std::string>{"--pgq-consumer"}) return run_pgq_consumer();
  if (words == std::vector<std::string>{"--bare-consumer"}) return run_bare_consumer();
  if (words.size() == 3 && words[0] == "--publish") return publish_file(words[1], words[2]);
  if (words.size() == 3 && words[0] == "--compare") return print_comparison(words[1], words[2]);
  return std::nullopt;
}

}  // namespace
}  // namespace mailroom::bench

int main(int argc, char** argv) {
  using namespace mailroom::bench;
  BenchOptions options;
  CLI::App app("Measures mailroom on a PostgreSQL server of its own.");
  app.add_option("--binary", options.binary, "the mailroom to measure")->required();
  app.add_option("--only", options.only, "rows, or the beginnings of their names: drain,latency/100")
      ->delimiter(',');
  app.add_option("--runs", options.runs, "how often each row is measured [5]")->check(CLI::Range(1, 100));
  app.add_option("--scale", options.scale, "share of the usual amounts of data and time [1]")
      ->check(CLI::Range(0.001, 10.0));
  app.add_option("--minutes", options.minutes,
                 "begin no measurement after so long; the table says how many runs there were [30]")
      ->check(CLI::Range(0.1, 600.0));
  app.add_option(
         "--flush-ms", options.flush_ms,
         "let each flush of the WAL take so much longer, as on a slower disk, once the data is loaded [0]")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--json", options.json, "write all figures into this file too");
  app.add_option("--rivals", options.rivals,
                 "the directory that npm installed the other systems in: measure them too");
  app.add_flag("--brokers", options.brokers,
               "measure NATS and RabbitMQ too; scripts/with-nats and scripts/with-rabbitmq run them");
  app.add_flag("--list", options.list, "name the rows and say what each measures");
  try {
    if (const auto status = run_as_program({argv + 1, argv + argc})) return *status;
    CLI11_PARSE(app, argc, argv);
    return run_bench(options);
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << '\n';
    return 1;
  }
}
