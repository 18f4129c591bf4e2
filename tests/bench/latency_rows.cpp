// How long a token takes from its commit to the consumer.

#include <fmt/format.h>

#include "bench/databases.hpp"
#include "bench/latency.hpp"

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

Row latency_row(const std::string& name, const std::string& meaning, int limit, const Arrivals& arrivals) {
  return {.name = "latency/" + name,
          .meaning = "from the commit to the line: " + meaning,
          .prepare = [](Stage& stage) { make_live_database(stage, latency_database); },
          .measure =
              [limit, arrivals](Stage& stage) {
                clear_queue(stage, latency_database);
                return measure_latency(stage, collector(stage, limit, limit == 1 ? "5s" : "1ms"), arrivals);
              }};
}

}  // namespace

std::vector<Row> latency_rows() {
  return {latency_row("100", "100 inserts/s, batch limit 1", 1, {.rate = 100, .clients = 2, .seconds = 5}),
          latency_row("1000", "1,000 inserts/s, batch limit 100, timeout 1 ms", 100,
                      {.rate = 1'000, .clients = 4, .seconds = 4}),
          latency_row("5000", "5,000 inserts/s, batch limit 100, timeout 1 ms", 100,
                      {.rate = 5'000, .clients = 16, .seconds = 4})};
}

}  // namespace mailroom::bench
