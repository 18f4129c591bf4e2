// What a large pruning costs a collector under load, and what it leaves of the tables.

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <thread>
#include <unistd.h>

#include "base/json.hpp"
#include "bench/databases.hpp"
#include "bench/grown_database.hpp"
#include "bench/latency.hpp"
#include "bench/row.hpp"
#include "support/http_client.hpp"
#include "support/subprocess.hpp"

namespace mailroom::bench {
namespace {

const std::string prune_database = "pruned";

/// The share of the grown database's tokens that is removed: a third of thirty million.
constexpr int pruned_share = 3;

/// How long the collector runs at a time.
constexpr double stretch_seconds = 12;

/// The claims of a collector so far, with their commits, by its own histogram.
struct Claims {
  double all = 0;
  double within_10_ms = 0;
  double within_50_ms = 0;
};

Claims read_claims(const config::ListenAddress& address) {
  const auto scrape = test::Scrape::of(address);
  const auto within = [&](const std::string& seconds) {
    return scrape.value("mailroom_batch_stage_seconds_bucket{queue=\"mailroom\",stage=\"claim\",le=\"" +
                        seconds + "\"}");
  };
  return {within("+Inf"), within("0.01"), within("0.05")};
}

/// Tokens and the bytes of their table with its indexes.
struct TableSize {
  double rows = 0;
  double table = 0;
  double all = 0;
};

TableSize size_of_tokens(Stage& stage) {
  const auto row =
      stage.connect(prune_database)
          ->run(
              "SELECT count(*), pg_relation_size('tokens'), pg_total_relation_size('tokens') FROM tokens")[0];
  return {row[0].as<double>(), row[1].as<double>(), row[2].as<double>()};
}

/// How often the disk stood still, as a file of its own shows. A standstill delays one claim of a collector.
class DiskWatch {
 public:
  explicit DiskWatch(const std::string& path) : file_(open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    if (file_ < 0 || !write_page() || fsync(file_) != 0) throw std::runtime_error("cannot write " + path);
    thread_ = std::thread([this] { watch(); });
  }
  ~DiskWatch() {
    stop();
    close(file_);
  }
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  /// Stops. Returns how many writes with their fdatasync took over 25 ms. Throws std::runtime_error if one
  /// has failed.
  int end() {
    stop();
    if (has_failed_) throw std::runtime_error("cannot write the file that watches the disk");
    return slow_;
  }

 private:
  bool write_page() const {
    const std::array<char, 8192> page{};
    return pwrite(file_, page.data(), page.size(), 0) == static_cast<ssize_t>(page.size());
  }

  void stop() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void watch() {
    while (!ended_ && !has_failed_) {
      const auto start = std::chrono::steady_clock::now();
      has_failed_ = !write_page() || fdatasync(file_) != 0;
      if (std::chrono::steady_clock::now() - start > std::chrono::milliseconds(25)) ++slow_;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  int file_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> has_failed_{false};
  std::atomic<int> slow_{0};
  std::thread thread_;
};

/// What a collector under load did in some stretches of time.
class LoadedCollector {
 public:
  explicit LoadedCollector(std::string name) : name_(std::move(name)) {}

  /// A collector at limit 100 that 1,000 inserts a second keep busy.
  void run(Stage& stage) {
    const auto socket = stage.path("metrics.sock");
    DiskWatch disk(stage.path("disk"));
    const auto figures = measure_latency(
        stage,
        {.database = prune_database,
         .setup =
             [&] {
               return stage.mailroom(prune_database, {"collect", "-q", "--batch-limit", "100",
                                                      "--batch-timeout", "1ms", "--metrics", socket});
             },
         .is_ready = [&] { return has_collector(stage, prune_database); },
         .at_end = [&] { claims_.push_back(read_claims({.path = socket})); }},
        {.rate = 1'000, .clients = 4, .seconds = stretch_seconds});
    for (const auto& figure : figures)
      latencies_[figure.name].push_back(figure.value);
    standstills_ += disk.end();
  }

  Figures figures() const {
    Claims all;
    for (const auto& claims : claims_) {
      all.all += claims.all;
      all.within_10_ms += claims.within_10_ms;
      all.within_50_ms += claims.within_50_ms;
    }
    const auto slow = all.all - all.within_50_ms;
    return {{name_ + " claims", all.all, ""},
            {name_ + " claims over 10 ms", all.all - all.within_10_ms, ""},
            {name_ + " claims over 50 ms", slow, ""},
            {name_ + " standstills", static_cast<double>(standstills_), ""},
            {name_ + " other claims over 50 ms", std::max(slow - standstills_, 0.0), ""},
            {name_ + " p50", middle("p50"), "ms"},
            {name_ + " p99", middle("p99"), "ms"},
            {name_ + " rate", middle("rate"), "commits/s"}};
  }

 private:
  double middle(const std::string& name) const {
    auto values = latencies_.at(name);
    std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
    return values[values.size() / 2];
  }

  std::string name_;
  std::vector<Claims> claims_;
  std::map<std::string, std::vector<double>> latencies_;
  int standstills_ = 0;
};

/// A pruning that is continued after each stop.
struct Pruning {
  std::vector<std::string> words;
  double tokens = 0;
  double rate = 0;  ///< tokens per second in the stretch before the last, which ends early
  bool ended = false;
};

/// Goes on with the pruning while the collector runs, and stops it after that.
void prune_beside(Stage& stage, Pruning& pruning, LoadedCollector& collector) {
  auto setup = stage.mailroom(prune_database, pruning.words);
  setup.output = stage.path("pruned");
  Process prune(setup);
  collector.run(stage);
  prune.signal(SIGTERM);
  const auto cost = prune.wait();
  const auto report = parse_json(test::read_file(setup.output));
  const auto tokens = report.at("tokens").get<double>();
  pruning.tokens += tokens;
  pruning.ended = !report.at("stopped").get<bool>();
  if (!pruning.ended) pruning.rate = tokens / cost.seconds;
}

/// A copy of the grown database, which the pruning may change, without tokens that wait.
void copy_database(Stage& stage) {
  const auto grown = grown_database(stage, 30);
  stage.create_database(prune_database, grown.name);
  const auto connection = stage.connect(prune_database);
  connection->run("DELETE FROM tokens WHERE id > $1", grown.emitted);
  // Otherwise the kernel writes the copy while the collector is measured.
  connection->run("CHECKPOINT");
  sync();
}

/// Removes a third of the tokens beside the load, with autovacuum on as by default. The collector runs alone
/// and beside the pruning by turns, since the machine's own pauses come and go.
Figures measure_beside(Stage& stage) {
  copy_database(stage);
  const auto connection = stage.connect(prune_database);
  const auto age =
      connection
          ->run(
              "SELECT extract(epoch FROM now())::bigint - expires_at FROM tokens WHERE id = (SELECT max(id) / $1 FROM tokens)",
              pruned_share)[0][0]
          .as<std::int64_t>();
  const auto before = size_of_tokens(stage);
  stage.set("autovacuum", "on");
  LoadedCollector alone("alone");
  LoadedCollector beside("beside");
  Pruning pruning{.words = {"prune", "--yes", "-o", "json", "--older-than", fmt::format("{}s", age)}};
  while (!pruning.ended) {
    alone.run(stage);
    prune_beside(stage, pruning, beside);
  }
  connection->run("VACUUM tokens");
  stage.set("autovacuum", "off");
  const auto after = size_of_tokens(stage);
  const auto live = after.rows / before.rows;
  auto figures = alone.figures();
  for (auto& figure : beside.figures())
    figures.push_back(std::move(figure));
  figures.insert(figures.end(), {{"tokens", pruning.tokens, "tokens"},
                                 {"rate", pruning.rate, "tokens/s"},
                                 {"table / live size", after.table / (before.table * live), ""},
                                 {"with indexes / live size", after.all / (before.all * live), ""}});
  stage.drop_database(prune_database);
  return figures;
}

}  // namespace

std::vector<Row> prune_rows() {
  return {{.name = "prune/beside",
           .meaning = "ten of thirty million tokens pruned, beside a collector and 1,000 inserts/s",
           .prepare = [](Stage& stage) { grown_database(stage, 30); },
           .measure = measure_beside,
           .only_by_name = true}};
}

}  // namespace mailroom::bench
