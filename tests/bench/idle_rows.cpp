// What an idle collector costs: measured for a minute, reported per hour.

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <fstream>
#include <thread>

#include "bench/databases.hpp"
#include "bench/row.hpp"
#include "support/subprocess.hpp"

namespace mailroom::bench {
namespace {

const std::string idle_database = "idle";

/// Cumulative usage at one moment.
struct Meter {
  std::chrono::steady_clock::time_point at;
  double collector_cpu = 0;
  double backend_cpu = 0;
  std::int64_t next_transaction = 0;
  std::int64_t wal = 0;
  std::int64_t statements = 0;
};

/// Counts the lines of the server's log that record a statement of `backend`.
std::int64_t count_statements(Stage& stage, int backend) {
  std::ifstream log(stage.cluster().path("server.log"));
  const auto origin = fmt::format("[{}] LOG:  ", backend);
  std::int64_t found = 0;
  for (std::string line; std::getline(log, line);) {
    const auto at = line.find(origin);
    if (at == std::string::npos) continue;
    const auto text = line.substr(at + origin.size());
    if (text.rfind("statement:", 0) == 0 || text.rfind("execute ", 0) == 0) ++found;
  }
  return found;
}

Meter read_meter(Stage& stage, db::Connection& connection, pid_t collector, int backend) {
  const auto row = connection.run(
      "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, "
      "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")[0];
  return {.at = std::chrono::steady_clock::now(),
          .collector_cpu = cpu_seconds_of(collector),
          .backend_cpu = cpu_seconds_of(backend),
          .next_transaction = row[0].as<std::int64_t>(),
          .wal = row[1].as<std::int64_t>(),
          .statements = count_statements(stage, backend)};
}

Figures compare(const Meter& before, const Meter& after) {
  const double seconds = std::chrono::duration<double>(after.at - before.at).count();
  const auto by_hour = [&](auto from, auto to) { return static_cast<double>(to - from) / seconds * 3600; };
  const double collector = after.collector_cpu - before.collector_cpu;
  const double backend = after.backend_cpu - before.backend_cpu;
  return {{"core", (collector + backend) / seconds * 100, "%"},
          {"collector CPU", by_hour(before.collector_cpu, after.collector_cpu), "s/h"},
          {"backend CPU", by_hour(before.backend_cpu, after.backend_cpu), "s/h"},
          {"statements", by_hour(before.statements, after.statements), "/h"},
          {"transaction ids", by_hour(before.next_transaction, after.next_transaction), "/h"},
          {"WAL", by_hour(before.wal, after.wal), "bytes/h"}};
}

Figures measure_idle(Stage& stage) {
  Process collector(stage.mailroom(idle_database, {"collect"}));
  const auto connection = stage.connect("postgres");
  int backend = 0;
  if (!test::eventually([&] { return (backend = collector_backend(stage, idle_database)) != 0; }))
    throw std::runtime_error("the collector does not begin");
  // Wait until the collector has started and the checkpoint's own records are written.
  connection->run("CHECKPOINT");
  std::this_thread::sleep_for(std::chrono::seconds(20));
  const auto before = read_meter(stage, *connection, collector.pid(), backend);
  std::this_thread::sleep_for(std::chrono::duration<double>(std::max(5.0, stage.scaled_seconds(60))));
  const auto after = read_meter(stage, *connection, collector.pid(), backend);
  collector.signal(SIGTERM);
  collector.wait();
  return compare(before, after);
}

void make_idle_database(Stage& stage) {
  make_live_database(stage, idle_database);
  stage.connect("postgres")->run("ALTER DATABASE " + idle_database + " SET log_statement = 'all'");
}

}  // namespace

std::vector<Row> idle_rows() {
  return {{.name = "idle",
           .meaning = "an hour of a collector with nothing to do, reckoned from one minute",
           .prepare = make_idle_database,
           .measure = measure_idle,
           .max_runs = 1}};
}

}  // namespace mailroom::bench
