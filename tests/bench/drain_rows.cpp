// How fast collectors drain a backlog: whole processes, from start to exit.

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>

#include "bench/collected.hpp"
#include "bench/databases.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {
namespace {

using LoadBacklog = Backlog (*)(Stage&);

struct Drain {
  int limit;
  std::int64_t tokens;  ///< drained from the end of the backlog, before scaling
  int collectors = 1;
  int lines_per_claim = 1;
};

/// Small batches drain fewer tokens, so that every run takes seconds.
constexpr std::int64_t tokens_for(int limit) {
  if (limit == 10) return 30'000;
  return limit == 100 ? 200'000 : 500'000;
}

Figures measure_drain(Stage& stage, const Backlog& backlog, const Drain& drain) {
  const auto tokens = std::min(stage.scaled(drain.tokens), backlog.due);
  place_cursor(*stage.connect(backlog.database), backlog.old_tokens + backlog.due - tokens);
  std::vector<std::string> files;
  std::vector<Process> collectors;
  for (int i = 0; i < drain.collectors; ++i) {
    auto setup = stage.mailroom(backlog.database,
                                {"collect", "--once", "-q", "--batch-limit", std::to_string(drain.limit),
                                 "--lines-per-claim", std::to_string(drain.lines_per_claim)});
    setup.output = files.emplace_back(stage.path("collected" + std::to_string(i)));
    collectors.emplace_back(std::move(setup));
  }
  double seconds = 0;
  for (auto& collector : collectors)
    seconds = std::max(seconds, collector.wait().seconds);
  require_tokens(files, tokens);
  return {{.value = static_cast<double>(tokens) / seconds, .unit = "tokens/s"}};
}

/// The time PostgreSQL takes to join the same rows and send them to a client that only writes them to a file.
Figures measure_copy(Stage& stage, const Backlog& backlog) {
  const auto query = fmt::format(
      "COPY (SELECT t.action, a.email, a.login, t.secret, t.code FROM tokens t "
      "JOIN accounts a ON a.id = t.account WHERE t.id > {}) TO STDOUT",
      backlog.old_tokens);
  auto setup = stage.program(backlog.database, {test::server_binaries() + "/psql", "-Xqc", query});
  setup.output = stage.path("copied");
  const auto cost = Process(setup).wait();
  if (count_lines(setup.output) != backlog.due)
    throw std::runtime_error("COPY did not give the whole backlog");
  return {{.value = static_cast<double>(backlog.due) / cost.seconds, .unit = "tokens/s"}};
}

/// One collector skips the expired tokens and stops after the first batch of due ones.
Figures measure_skip(Stage& stage) {
  const auto backlog = expired_backlog(stage);
  place_cursor(*stage.connect(backlog.database), 0);
  auto setup = stage.mailroom(backlog.database, {"collect", "--once", "-q", "--batch-limit", "1000"});
  setup.output = stage.path("collected0");
  const auto cost = Process(setup).wait();
  require_tokens({setup.output}, backlog.due);
  return {{.value = static_cast<double>(backlog.old_tokens) / cost.seconds, .unit = "tokens/s"}};
}

Row drain_row(const std::string& name, const std::string& meaning, LoadBacklog load, int limit,
              int collectors) {
  const Drain drain{.limit = limit, .tokens = tokens_for(limit), .collectors = collectors};
  return {.name = fmt::format("drain/{}{}", limit, name),
          .meaning = fmt::format("{} at batch limit {}", meaning, limit),
          .prepare = [load](Stage& stage) { load(stage); },
          .measure = [load, drain](Stage& stage) { return measure_drain(stage, load(stage), drain); }};
}

Row copy_row(const std::string& name, const std::string& meaning, LoadBacklog load) {
  return {.name = name,
          .meaning = meaning,
          .prepare = [load](Stage& stage) { load(stage); },
          .measure = [load](Stage& stage) { return measure_copy(stage, load(stage)); }};
}

}  // namespace

std::vector<Row> drain_rows() {
  std::vector<Row> rows{copy_row("copy/plain", "the floor: psql COPY of the same join", plain_backlog)};
  for (const int limit : {10, 100, 1'000, 10'000})
    rows.push_back(drain_row("", "one collector", plain_backlog, limit, 1));
  rows.push_back({.name = "drain/10/lines",
                  .meaning = "one collector at batch limit 10, 1,000 lines a claim",
                  .prepare = [](Stage& stage) { plain_backlog(stage); },
                  .measure =
                      [](Stage& stage) {
                        return measure_drain(stage, plain_backlog(stage),
                                             {.limit = 10, .tokens = 500'000, .lines_per_claim = 1'000});
                      }});
  for (const int limit : {10, 100, 1'000, 10'000})
    rows.push_back(drain_row("/two", "two collectors", plain_backlog, limit, 2));
  const std::string scattered = "accounts in scattered order";
  rows.push_back(copy_row("copy/scattered", "the floor, " + scattered, scattered_backlog));
  for (const int limit : {1'000, 10'000})
    rows.push_back(drain_row("/scattered", "one collector, " + scattered + ",", scattered_backlog, limit, 1));
  const std::string old_tokens = "ten million old tokens behind the cursor";
  for (const int limit : {10, 100, 1'000, 10'000})
    rows.push_back(drain_row("/old", "one collector, " + old_tokens + ",", deep_backlog, limit, 1));
  rows.push_back({.name = "skip",
                  .meaning = "a million expired tokens skipped, batch limit 1000",
                  .prepare = [](Stage& stage) { expired_backlog(stage); },
                  .measure = measure_skip});
  return rows;
}

}  // namespace mailroom::bench
