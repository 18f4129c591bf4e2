// PgQ: batches between two ticks, handled by pgq_consumer.cpp.

#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "bench/databases.hpp"
#include "bench/rival_rows.hpp"

namespace mailroom::bench {
namespace {

const std::string pgq_database = "rival_pgq";
constexpr std::int64_t events_a_tick = 10'000;

const std::string event_columns =
    "'mail', '1', encode(sha256(int8send({0})), 'hex'), 'user' || {0} || '@bench.example', 'user' || {0}, "
    "'12345', ''";

void prepare(Stage& stage) {
  stage.once(pgq_database, [&] {
    stage.create_database(pgq_database, "template0");
    const auto connection = stage.connect(pgq_database);
    connection->run("CREATE EXTENSION pgq");
  });
}

/// Creates a new queue, without anything from the last run.
void make_queue(db::Connection& connection) {
  connection.run("SELECT pgq.drop_queue(queue_name, true) FROM pgq.queue");
  connection.run("SELECT pgq.create_queue('mail')");
  connection.run("SELECT pgq.set_queue_config('mail', 'ticker_max_count', $1)",
                 std::to_string(events_a_tick));
  connection.run("SELECT pgq.set_queue_config('mail', 'ticker_max_lag', '100 milliseconds')");
  connection.run("SELECT pgq.register_consumer('mail', 'bench')");
}

Process::Setup consumer(const Stage& stage) {
  return rival_program(stage, pgq_database, {"/proc/self/exe", "--pgq-consumer"});
}

Figures drain(Stage& stage) {
  const auto events = stage.scaled(300'000);
  const auto connection = stage.connect(pgq_database);
  make_queue(*connection);
  const auto insert = "SELECT count(pgq.insert_event(" + fmt::format(fmt::runtime(event_columns), "g") +
                      ")) FROM generate_series($1::bigint, $2::bigint) g";
  for (std::int64_t first = 1; first <= events; first += events_a_tick) {
    connection->run(insert, first, std::min(events, first + events_a_tick - 1));
    connection->run("SELECT pgq.force_tick('mail')");
    connection->run("SELECT pgq.ticker('mail')");
  }
  connection->run("VACUUM ANALYZE");
  return measure_rival_drain(stage, consumer(stage), events);
}

/// Starts PgQ's daemon at ten ticks per second.
Process start_ticker(Stage& stage) {
  const auto file = stage.path("pgqd.ini");
  std::ofstream(file) << "[pgqd]\nsyslog = 0\nticker_period = 0.1\ncheck_period = 1\n"
                      << "initial_database = " << pgq_database << "\ndatabase_list = " << pgq_database << "\n"
                      << "base_connstr = host=" << stage.cluster().host()
                      << " port=" << stage.cluster().port() << " user=postgres\n";
  return Process(stage.program(pgq_database, {"pgqd", "-q", file}));
}

Figures serve(Stage& stage) {
  make_queue(*stage.connect(pgq_database));
  const auto ticker = start_ticker(stage);
  std::filesystem::remove(ready_file(stage));
  const Consumer timed{.database = pgq_database,
                       .setup = [&] { return consumer(stage); },
                       .is_ready = [&] { return std::filesystem::exists(ready_file(stage)); },
                       .insert = "SELECT pg_current_xact_id()::text, pgq.insert_event(" +
                                 fmt::format(fmt::runtime(event_columns), "$1::bigint") + ")"};
  return measure_latency(stage, timed, {.rate = 100, .clients = 2, .seconds = 5});
}

}  // namespace

std::vector<Row> pgq_rows() {
  return {{.name = "rivals/pgq/drain",
           .meaning = "PgQ: a backlog, ticks of 10,000 events",
           .prepare = prepare,
           .measure = drain},
          {.name = "rivals/pgq/100",
           .meaning = "PgQ: from the commit to the line at 100 inserts/s, ten ticks a second",
           .prepare = prepare,
           .measure = serve}};
}

}  // namespace mailroom::bench
