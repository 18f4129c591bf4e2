// A collector's peak memory.

#include <fmt/format.h>

#include "bench/collected.hpp"
#include "bench/databases.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {
namespace {

Figures measure_memory(Stage& stage, int limit) {
  const auto backlog = plain_backlog(stage);
  // A few batches are enough: the first one shows what a batch takes.
  const auto tokens = std::min<std::int64_t>(backlog.due, std::max(5'000, 5 * limit));
  place_cursor(*stage.connect(backlog.database), backlog.due - tokens);
  auto setup =
      stage.mailroom(backlog.database, {"collect", "--once", "-q", "--batch-limit", std::to_string(limit)});
  setup.output = stage.path("collected0");
  const auto cost = Process(setup).wait();
  require_tokens({setup.output}, tokens);
  return {{.value = static_cast<double>(cost.peak_kib) / 1024, .unit = "MiB"}};
}

}  // namespace

std::vector<Row> memory_rows() {
  return {{.name = "memory/10",
           .meaning = "peak resident memory of a collector at batch limit 10",
           .prepare = [](Stage& stage) { plain_backlog(stage); },
           .measure = [](Stage& stage) { return measure_memory(stage, 10); }}};
}

}  // namespace mailroom::bench
