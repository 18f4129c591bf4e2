// How long a token takes from its commit to the consumer.

#include <filesystem>
#include <fmt/format.h>

#include "bench/databases.hpp"
#include "bench/latency.hpp"
#include "bench/rival_rows.hpp"

namespace mailroom::bench {
namespace {

const std::string latency_database = "live";

Consumer collector(Stage& stage, int limit, const std::string& timeout) {
  return {.database = latency_database,
          .setup =
              [&stage, limit, timeout] {
                return stage.mailroom(latency_database, {"collect", "--batch-limit", std::to_string(limit),
                                                         "--batch-timeout", timeout});
              },
          .is_ready = [&stage] { return has_collector(stage, latency_database); }};
}

Consumer bare_consumer(Stage& stage) {
  return {.database = latency_database,
          .setup =
              [&stage] {
                std::filesystem::remove(ready_file(stage));
                return rival_program(stage, latency_database, {"/proc/self/exe", "--bare-consumer"});
              },
          .is_ready = [&stage] { return std::filesystem::exists(ready_file(stage)); }};
}

Row live_row(const std::string& name, const std::string& meaning,
             const std::function<Figures(Stage&)>& measure) {
  return {.name = "latency/" + name,
          .meaning = meaning,
          .prepare = [](Stage& stage) { make_live_database(stage, latency_database); },
          .measure =
              [measure](Stage& stage) {
                clear_queue(stage, latency_database);
                return measure(stage);
              }};
}

Row latency_row(const std::string& name, const std::string& meaning, int limit, const Arrivals& arrivals) {
  return live_row(name, "from the commit to the line: " + meaning, [limit, arrivals](Stage& stage) {
    return measure_latency(stage, collector(stage, limit, limit == 1 ? "5s" : "1ms"), arrivals);
  });
}

/// What the machine takes for it at least.
Row bare_row(const std::string& name, const std::string& meaning, const Arrivals& arrivals) {
  return live_row(
      name + "/bare", "a program that listens and runs one durable statement: " + meaning,
      [arrivals](Stage& stage) { return measure_latency(stage, bare_consumer(stage), arrivals); });
}

/// What the machine inserts at most: nobody is notified or consumes.
Row inserts_row(const std::string& name, const std::string& meaning, const Arrivals& arrivals) {
  return live_row(name + "/inserts", meaning + ", and nobody who consumes them", [arrivals](Stage& stage) {
    const auto connection = stage.connect(latency_database);
    connection->run("ALTER TABLE tokens DISABLE TRIGGER after_token_inserted");
    auto figures =
        measure_inserts(stage, {.database = latency_database, .setup = {}, .is_ready = {}}, arrivals);
    connection->run("ALTER TABLE tokens ENABLE TRIGGER after_token_inserted");
    return figures;
  });
}

}  // namespace

std::vector<Row> latency_rows() {
  const Arrivals few{.rate = 100, .clients = 2, .seconds = 5};
  const Arrivals more{.rate = 1'000, .clients = 4, .seconds = 4};
  const Arrivals many{.rate = 5'000, .clients = 16, .seconds = 4};
  return {latency_row("100", "100 inserts/s, batch limit 1", 1, few), bare_row("100", "100 inserts/s", few),
          latency_row("1000", "1,000 inserts/s, batch limit 100, timeout 1 ms", 100, more),
          latency_row("5000", "5,000 inserts/s, batch limit 100, timeout 1 ms", 100, many),
          inserts_row("5000", "5,000 inserts/s", many)};
}

}  // namespace mailroom::bench
