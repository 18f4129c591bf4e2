#include "bench/rival_rows.hpp"

#include <filesystem>
#include <fmt/format.h>

#include "bench/collected.hpp"
#include "bench/databases.hpp"
#include "bench/message_databases.hpp"
#include "bench/pgbench.hpp"

namespace mailroom::bench {
namespace {

/// A queue whose workers run in Node.js.
struct NodeRival {
  std::string name;  ///< as in the rows
  std::string script;
  std::string database;
  std::int64_t jobs;   ///< per drain, before scaling
  std::string clear;   ///< SQL that empties the queue
  std::string load;    ///< SQL that adds $1 jobs
  std::string insert;  ///< SQL that adds the job of account $1 and returns the transaction's id
};

NodeRival graphile_worker() {
  return {.name = "graphile-worker",
          .script = "graphile_worker.mjs",
          .database = "rival_graphile",
          .jobs = 60'000,
          .clear = "TRUNCATE graphile_worker._private_jobs",
          .load = fmt::format("SELECT count(*) FROM graphile_worker.add_jobs((SELECT array_agg(ROW('mail', "
                              "json_build_object({}), "
                              "NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec) FROM "
                              "generate_series(1, $1::bigint) g))",
                              job_payload("g")),
          .insert = fmt::format(
              "SELECT pg_current_xact_id()::text FROM graphile_worker.add_job('mail', json_build_object({}))",
              job_payload("$1::bigint"))};
}

NodeRival pg_boss() {
  return {.name = "pg-boss",
          .script = "pg_boss.mjs",
          .database = "rival_boss",
          .jobs = 20'000,
          .clear = "TRUNCATE pgboss.job",
          .load = fmt::format("INSERT INTO pgboss.job (name, data) SELECT 'mail', jsonb_build_object({}) "
                              "FROM generate_series(1, $1::bigint) g",
                              job_payload("g")),
          .insert = fmt::format("INSERT INTO pgboss.job (name, data) VALUES ('mail', jsonb_build_object({})) "
                                "RETURNING pg_current_xact_id()::text",
                                job_payload("$1::bigint"))};
}

Process::Setup node(const Stage& stage, const std::string& directory, const NodeRival& rival,
                    const std::string& mode) {
  auto setup = rival_program(stage, rival.database,
                             {directory + "/node_modules/.bin/node", directory + "/" + rival.script, mode});
  setup.environment["BENCH_URL"] =
      fmt::format("postgres://postgres@localhost/{}?host={}", rival.database, setup.environment["PGHOST"]);
  setup.environment["NODE_ENV"] = "production";
  return setup;
}

void prepare(Stage& stage, const std::string& directory, const NodeRival& rival) {
  stage.once(rival.database, [&] {
    stage.create_database(rival.database, "template0");
    Process(node(stage, directory, rival, "prepare")).wait();
  });
}

Figures drain(Stage& stage, const std::string& directory, const NodeRival& rival) {
  const auto jobs = stage.scaled(rival.jobs);
  const auto connection = stage.connect(rival.database);
  connection->run(rival.clear);
  connection->run(rival.load, jobs);
  connection->run("VACUUM ANALYZE");
  return measure_rival_drain(stage, node(stage, directory, rival, "drain"), jobs);
}

Figures serve(Stage& stage, const std::string& directory, const NodeRival& rival, const Arrivals& arrivals) {
  const auto connection = stage.connect(rival.database);
  connection->run(rival.clear);
  connection->run("VACUUM ANALYZE");
  std::filesystem::remove(ready_file(stage));
  const Consumer consumer{.database = rival.database,
                          .setup = [&] { return node(stage, directory, rival, "serve"); },
                          .is_ready = [&] { return std::filesystem::exists(ready_file(stage)); },
                          .insert = rival.insert};
  return measure_latency(stage, consumer, arrivals);
}

Row latency_row(const std::string& directory, const NodeRival& rival, const Arrivals& arrivals) {
  return {.name = fmt::format("rivals/{}/{:.0f}", rival.name, arrivals.rate),
          .meaning =
              fmt::format("{}: from the commit to the line at {:.0f} inserts/s", rival.name, arrivals.rate),
          .prepare = [=](Stage& stage) { prepare(stage, directory, rival); },
          .measure = [=](Stage& stage) { return serve(stage, directory, rival, arrivals); }};
}

Row drain_row(const std::string& directory, const NodeRival& rival, const std::string& how) {
  return {.name = fmt::format("rivals/{}/drain", rival.name),
          .meaning = fmt::format("{}: a backlog, {}", rival.name, how),
          .prepare = [=](Stage& stage) { prepare(stage, directory, rival); },
          .measure = [=](Stage& stage) { return drain(stage, directory, rival); }};
}

/// How fast jobs with the content of a mail of 2 kB are added.
Row adding_row(const std::string& directory, const std::string& name, int clients, const std::string& sql,
               int rows = 1) {
  return {.name = "rivals/graphile-worker/" + name,
          .meaning = fmt::format("graphile-worker: jobs of 2 kB added by {} client(s), {} a statement",
                                 clients, rows),
          .prepare = [=](Stage& stage) { prepare(stage, directory, graphile_worker()); },
          .measure = [=](Stage& stage) -> Figures {
            const auto rival = graphile_worker();
            stage.connect(rival.database)->run(rival.clear);
            return {{.value = rows * statements_per_second(stage, rival.database, clients, sql),
                     .unit = "jobs/s"}};
          }};
}

std::vector<Row> adding_rows(const std::string& directory) {
  const auto payload =
      fmt::format("json_build_object('to', 'ada@bench.example', 'subject', 'Your receipt', 'text', '{}')",
                  body_literal());
  const auto one = fmt::format("SELECT graphile_worker.add_job('mail', {});", payload);
  const auto many = fmt::format(
      "SELECT count(*) FROM graphile_worker.add_jobs((SELECT array_agg(ROW('mail', {}, NULL, NULL, NULL, NULL, NULL, "
      "NULL)::graphile_worker.job_spec) FROM generate_series(1, 1000) g));",
      payload);
  return {adding_row(directory, "add_job/1", 1, one), adding_row(directory, "add_job/8", 8, one),
          adding_row(directory, "add_jobs", 1, many, 1'000)};
}

}  // namespace

std::string job_payload(const std::string& account) {
  return fmt::format(
      "'action', 1, 'email', 'user' || {0} || '@bench.example', 'login', 'user' || {0}, "
      "'secret', encode(sha256(int8send({0})), 'hex'), 'code', '12345'",
      account);
}

std::string ready_file(const Stage& stage) {
  return stage.path("ready");
}

Process::Setup rival_program(const Stage& stage, const std::string& database,
                             std::vector<std::string> command) {
  auto setup = stage.program(database, std::move(command));
  setup.environment["BENCH_READY"] = ready_file(stage);
  return setup;
}

Figures measure_rival_drain(Stage& stage, Process::Setup setup, std::int64_t jobs) {
  setup.environment["BENCH_JOBS"] = std::to_string(jobs);
  setup.output = stage.path("rival");
  std::filesystem::remove(ready_file(stage));
  Process(setup).wait();
  // Measured from when the program is ready: Node.js takes half a second to load.
  const std::chrono::duration<double> took =
      std::filesystem::file_time_type::clock::now() - std::filesystem::last_write_time(ready_file(stage));
  require_tokens({setup.output}, jobs);
  return {{.value = static_cast<double>(jobs) / took.count(), .unit = "tokens/s"}};
}

std::vector<Row> node_rows(const std::string& directory) {
  const Arrivals few{.rate = 100, .clients = 2, .seconds = 5};
  const Arrivals many{.rate = 1'000, .clients = 4, .seconds = 4};
  std::vector<Row> rows{
      drain_row(directory, graphile_worker(), "local queue of 500"),
      drain_row(directory, pg_boss(), "batches of 1,000"), latency_row(directory, graphile_worker(), few),
      latency_row(directory, graphile_worker(), many), latency_row(directory, pg_boss(), few)};
  for (auto& row : adding_rows(directory))
    rows.push_back(std::move(row));
  return rows;
}

}  // namespace mailroom::bench
