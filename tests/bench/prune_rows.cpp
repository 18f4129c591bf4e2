// What a large pruning costs a collector under load, and what it leaves of the tables.

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/databases.hpp"
#include "bench/grown_database.hpp"
#include "bench/latency.hpp"
#include "bench/row.hpp"
#include "support/http_client.hpp"
#include "support/subprocess.hpp"

namespace mailroom::bench {
namespace {

const std::string database = "pruned";

/// The share of the grown database's tokens that is removed: a third of thirty million.
constexpr int pruned_share = 3;

/// The claims of a collector so far, with their commits, by its own histogram.
struct Claims {
  double all = 0;
  double within_10_ms = 0;
  double within_50_ms = 0;
};

Claims read_claims(const ListenAddress& address) {
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
  const auto row = stage.connect(database)->run(
      "SELECT count(*), pg_relation_size('tokens'), pg_total_relation_size('tokens') FROM tokens")[0];
  return {row[0].as<double>(), row[1].as<double>(), row[2].as<double>()};
}

/// A collector at limit 100 that 1,000 inserts a second keep busy.
Figures load(Stage& stage, const std::string& name, double seconds) {
  const auto socket = stage.path("metrics.sock");
  Claims claims;
  auto figures =
      measure_latency(stage,
                      {.database = database,
                       .setup =
                           [&] {
                             return stage.mailroom(database, {"collect", "-q", "--batch-limit", "100",
                                                              "--batch-timeout", "1ms", "--metrics", socket});
                           },
                       .is_ready = [&] { return has_collector(stage, database); },
                       .at_end = [&] { claims = read_claims({.path = socket}); }},
                      {.rate = 1'000, .clients = 4, .seconds = seconds});
  figures.insert(figures.begin(), {{"claims", claims.all, ""},
                                   {"claims over 10 ms", claims.all - claims.within_10_ms, ""},
                                   {"claims over 50 ms", claims.all - claims.within_50_ms, ""}});
  for (auto& figure : figures)
    figure.name = name + " " + figure.name;
  return figures;
}

/// Removes a third of the tokens beside the load, with autovacuum on as by default.
Figures measure_beside(Stage& stage) {
  const auto connection = stage.connect(database);
  const auto age =
      connection
          ->run(
              "SELECT extract(epoch FROM now())::bigint - expires_at FROM tokens WHERE id = (SELECT max(id) / $1 FROM tokens)",
              pruned_share)[0][0]
          .as<std::int64_t>();
  const auto before = size_of_tokens(stage);
  auto figures = load(stage, "alone", 10);
  stage.set("autovacuum", "on");
  auto setup =
      stage.mailroom(database, {"prune", "--yes", "-o", "json", "--older-than", fmt::format("{}s", age)});
  setup.output = stage.path("pruned");
  Process prune(std::move(setup));
  for (auto& figure : load(stage, "beside", 60))
    figures.push_back(std::move(figure));
  const auto cost = prune.wait(std::chrono::seconds(900));
  connection->run("VACUUM tokens");
  stage.set("autovacuum", "off");
  const auto removed =
      nlohmann::json::parse(test::read_file(stage.path("pruned"))).at("tokens").get<double>();
  const auto after = size_of_tokens(stage);
  const auto live = after.rows / before.rows;
  figures.insert(figures.end(), {{"tokens", removed, "tokens"},
                                 {"rate", removed / cost.seconds, "tokens/s"},
                                 {"table / live size", after.table / (before.table * live), ""},
                                 {"with indexes / live size", after.all / (before.all * live), ""}});
  stage.drop_database(database);
  return figures;
}

void prepare(Stage& stage) {
  const auto grown = grown_database(stage, 30);
  stage.create_database(database, grown.name);
  const auto connection = stage.connect(database);
  // The latencies are those of the inserted tokens alone.
  connection->run("DELETE FROM tokens WHERE id > $1", grown.emitted);
}

}  // namespace

std::vector<Row> prune_rows() {
  return {{.name = "prune/beside",
           .meaning = "ten of thirty million tokens pruned, beside a collector and 1,000 inserts/s",
           .prepare = prepare,
           .measure = measure_beside,
           .max_runs = 1,
           .only_by_name = true}};
}

}  // namespace mailroom::bench
