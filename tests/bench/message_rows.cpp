// What messages cost that applications ask for: the statement, the schedule, the claim with its fetch,
// memory.

#include <chrono>
#include <fmt/format.h>
#include <stdexcept>

#include "bench/message_databases.hpp"
#include "bench/pgbench.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {
namespace {

const std::string asking_database = "asking";
constexpr int rows_a_statement = 1'000;

/// Drains the last `tokens` of a backlog as lines of JSON.
Cost drain_as_json(Stage& stage, const Backlog& backlog, int limit, std::int64_t tokens) {
  const auto connection = stage.connect(backlog.database);
  place_cursor(*connection, backlog.due - tokens);
  const auto cost = Process(stage.mailroom(backlog.database, {"collect", "--once", "-q", "--format", "jsonl",
                                                              "--batch-limit", std::to_string(limit)}))
                        .wait();
  const auto cursor = connection->run("SELECT cursor FROM mailroom_queue_state('mailroom')")[0][0];
  if (cursor.as<std::int64_t>() != backlog.due) throw std::runtime_error("the backlog was not drained");
  return cost;
}

/// At limit 10, and the same tokens of accounts alone at once after it.
Figures measure_share(Stage& stage, const Backlog& backlog) {
  const auto alone = plain_backlog(stage);
  const auto tokens = std::min(backlog.due, alone.due);
  const auto rate = static_cast<double>(tokens) / drain_as_json(stage, backlog, 10, tokens).seconds;
  const auto usual = static_cast<double>(tokens) / drain_as_json(stage, alone, 10, tokens).seconds;
  return {{.value = rate, .unit = "tokens/s"},
          {.name = "tokens alone", .value = usual, .unit = "tokens/s"},
          {.name = "share", .value = rate / usual, .unit = ""}};
}

Row share_row(const std::string& name, const std::string& meaning, Backlog (*backlog)(Stage&)) {
  return {.name = "drain/10/" + name,
          .meaning = "one collector of JSON at batch limit 10, " + meaning,
          .prepare =
              [backlog](Stage& stage) {
                backlog(stage);
                plain_backlog(stage);
              },
          .measure = [backlog](Stage& stage) { return measure_share(stage, backlog(stage)); }};
}

/// In an emptied table, as while a consumer polls.
Figures measure_statement(Stage& stage, int clients, const std::string& sql, int rows) {
  clear_queue(stage, asking_database);
  const auto connection = stage.connect(asking_database);
  connection->run("TRUNCATE mailroom_messages CASCADE");
  connection->run("TRUNCATE bare");
  connection->run("SELECT mailroom_stay_polling()");
  return {
      {.value = rows * statements_per_second(stage, asking_database, clients, sql), .unit = "messages/s"}};
}

Row asking_row(const std::string& name, const std::string& meaning, int clients, const std::string& sql,
               int rows = 1) {
  return {
      .name = "messages/" + name,
      .meaning = meaning,
      .prepare =
          [](Stage& stage) {
            make_live_database(stage, asking_database);
            stage.once("a bare table", [&] {
              stage.connect(asking_database)
                  ->run(
                      "CREATE TABLE bare (LIKE mailroom_messages INCLUDING DEFAULTS INCLUDING IDENTITY, PRIMARY KEY (id))");
            });
          },
      .measure = [=](Stage& stage) { return measure_statement(stage, clients, sql, rows); }};
}

Row single_row(int clients) {
  return asking_row(
      std::to_string(clients), fmt::format("mailroom_send() of 2 kB by {} client(s)", clients), clients,
      fmt::format(
          "SELECT mailroom_send(ARRAY['ada@bench.example'], subject => 'Your receipt', text => '{}');",
          body_literal()));
}

Row bulk_row(const std::string& name, const std::string& meaning, const std::string& table) {
  return asking_row(
      name, fmt::format("1,000 rows of 2 kB a statement into {}", meaning), 1,
      fmt::format("INSERT INTO {} (recipients, subject, text) SELECT ARRAY['ada@bench.example'], "
                  "'Your receipt', '{}' FROM generate_series(1, {});",
                  table, body_literal(), rows_a_statement),
      rows_a_statement);
}

Figures measure_release(Stage& stage) {
  const auto database = waiting_messages(stage);
  const auto due = schedule_again(stage, database);
  const auto connection = stage.connect(database);
  const auto start = std::chrono::steady_clock::now();
  std::int64_t released = 0;
  for (std::int64_t some = 1; some > 0; released += some)
    some = connection->run("SELECT released FROM mailroom_release(1000)")[0][0].as<std::int64_t>();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (released != due)
    throw std::runtime_error(fmt::format("{} of {} messages were released", released, due));
  return {{.value = static_cast<double>(due) / took.count(), .unit = "messages/s"}};
}

Row memory_row(int limit) {
  return {.name = fmt::format("memory/{}/messages", limit),
          .meaning = fmt::format("the same with bodies of 50 kB at batch limit {}", limit),
          .prepare = [](Stage& stage) { large_messages(stage); },
          .measure = [limit](Stage& stage) -> Figures {
            const auto tokens = std::max(1'000, 2 * limit);
            const auto cost = drain_as_json(stage, large_messages(stage), limit, tokens);
            return {{.value = static_cast<double>(cost.peak_kib) / 1024, .unit = "MiB"}};
          }};
}

}  // namespace

std::vector<Row> message_rows() {
  return {share_row("messages", "every second token of a message of 2 kB", half_messages),
          share_row("scheduled", "beside a million messages for tomorrow", tokens_beside_schedule),
          single_row(1),
          single_row(8),
          bulk_row("bulk", "mailroom_messages", "mailroom_messages"),
          bulk_row("bare", "a table with the same columns and a primary key", "bare"),
          {.name = "messages/release",
           .meaning = "100,000 scheduled messages get their tokens, 1,000 a call",
           .prepare = [](Stage& stage) { waiting_messages(stage); },
           .measure = measure_release},
          memory_row(10),
          memory_row(1'000),
          memory_row(10'000)};
}

}  // namespace mailroom::bench
