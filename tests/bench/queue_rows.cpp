// What several queues cost: a queue that takes one action only, and a recovery behind a backlog of
// activations.

#include <fmt/format.h>

#include "bench/collected.hpp"
#include "bench/databases.hpp"
#include "bench/latency.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {
namespace {

void define_queue(Stage& stage, const std::string& database, std::vector<std::string> words) {
  words.insert(words.begin(), "queue");
  words.emplace_back("--yes");
  auto setup = stage.mailroom(database, std::move(words));
  setup.output = stage.path("queue.log");
  Process(std::move(setup)).wait();
}

/// What one collector drains a second from `cursor` on, which are `tokens`.
double drain_rate(Stage& stage, const Backlog& backlog, std::int64_t cursor, int limit, std::int64_t tokens) {
  place_cursor(*stage.connect(backlog.database), cursor);
  auto setup =
      stage.mailroom(backlog.database, {"collect", "--once", "-q", "--batch-limit", std::to_string(limit)});
  setup.output = stage.path("collected0");
  const auto cost = Process(setup).wait();
  require_tokens({setup.output}, tokens);
  return static_cast<double>(tokens) / cost.seconds;
}

void take_recoveries(Stage& stage, const std::string& database) {
  define_queue(stage, database, {"set", "mailroom", "--action", "recovery"});
}

/// Brings the tokens after `from` and their accounts into memory, so that it does not matter which drain
/// comes first.
void warm_up(Stage& stage, const Backlog& backlog, std::int64_t from) {
  stage.connect(backlog.database)
      ->run(
          "SELECT count(t.secret), count(a.email) FROM tokens t JOIN accounts a ON a.id = t.account WHERE t.id > $1",
          from);
}

/// The queue drains recoveries that are half of all tokens, then as many tokens as a queue of all.
Figures measure_filtered(Stage& stage, int limit, std::int64_t tokens) {
  const auto backlog = mixed_backlog(stage);
  tokens = std::min(stage.scaled(tokens), backlog.due);
  const auto all = backlog.old_tokens + backlog.due;
  warm_up(stage, backlog, all - 2 * tokens);
  take_recoveries(stage, backlog.database);
  const auto filtered = drain_rate(stage, backlog, all - 2 * tokens, limit, tokens);
  define_queue(stage, backlog.database, {"set", "mailroom", "--action", "all"});
  const auto plain = drain_rate(stage, backlog, all - tokens, limit, tokens);
  return {{.value = filtered, .unit = "tokens/s"},
          {.name = "unfiltered", .value = plain, .unit = "tokens/s"},
          {.name = "share", .value = filtered / plain, .unit = ""}};
}

Row filtered_row(int limit, std::int64_t tokens) {
  return {.name = fmt::format("drain/{}/filtered", limit),
          .meaning =
              fmt::format("one collector, every second token is another queue's, at batch limit {}", limit),
          .prepare = [](Stage& stage) { mixed_backlog(stage); },
          .measure = [limit, tokens](Stage& stage) { return measure_filtered(stage, limit, tokens); }};
}

/// One collector skips the tokens of another queue and stops after the first batch of its own.
Figures measure_queue_skip(Stage& stage) {
  const auto backlog = others_backlog(stage);
  stage.once("others skipped", [&] { take_recoveries(stage, backlog.database); });
  const auto rate = drain_rate(stage, backlog, 0, 1'000, backlog.due);
  const auto skipped = static_cast<double>(backlog.old_tokens) / static_cast<double>(backlog.due);
  return {{.value = rate * skipped, .unit = "tokens/s"}};
}

// --- a recovery behind a backlog ---

constexpr int behind_limit = 100;
constexpr std::int64_t recovering_accounts = 20'000;  ///< the first ones, which are active

std::string behind_database(Stage& stage) {
  const std::string database = "behind";
  make_live_database(stage, database);
  stage.once("behind queues", [&] {
    stage.connect(database)->run("UPDATE accounts SET status = 'active' WHERE id <= $1", recovering_accounts);
    define_queue(stage, database, {"create", "recovery", "--action", "recovery", "--priority", "10"});
    define_queue(stage, database, {"set", "mailroom", "--action", "activation"});
  });
  return database;
}

/// As many activations as are asked, and nothing else.
void load_activations(Stage& stage, const std::string& database, std::int64_t count) {
  clear_queue(stage, database);
  const auto connection = stage.connect(database);
  connection->run("SET session_replication_role = replica");
  connection->run(
      "INSERT INTO tokens (id, account, action, secret, code, expires_at) "
      "SELECT g, a.id, 'activation', sha256(int8send(g)), '00000', extract(epoch FROM now())::bigint + 86400 "
      "FROM generate_series(1, $1::bigint) g, LATERAL (SELECT $2::bigint + 1 + 3 * (g % 10000) AS id) a",
      count, recovering_accounts);
  connection->run("SELECT setval('tokens_id_seq', $1)", count + 1);
  connection->run("ANALYZE tokens");
}

Figures recover(Stage& stage, const std::string& database) {
  const Consumer consumer{.database = database,
                          .setup =
                              [&] {
                                return stage.mailroom(
                                    database, {"collect", "--queue", "recovery,mailroom", "--batch-limit",
                                               std::to_string(behind_limit), "--batch-timeout", "1ms"});
                              },
                          .is_ready = [&] { return has_collector(stage, database); },
                          .insert =
                              "INSERT INTO tokens (account, action) VALUES ($1, 'password_recovery') "
                              "RETURNING pg_current_xact_id()::text",
                          .only_action = "2"};
  return measure_latency(stage, consumer, {.rate = 100, .clients = 2, .seconds = 3});
}

double value_of(const Figures& figures, const std::string& name) {
  for (const auto& figure : figures) {
    if (figure.name == name) return figure.value;
  }
  throw std::runtime_error("no figure " + name);
}

/// The recoveries are inserted while the backlog drains: the consumer must not finish it before.
Figures measure_behind(Stage& stage) {
  const auto database = behind_database(stage);
  load_activations(stage, database, 0);
  const auto empty = recover(stage, database);
  const auto backlog = stage.scaled(500'000);
  load_activations(stage, database, backlog);
  const auto behind = recover(stage, database);
  const auto connection = stage.connect(database);
  const auto batches = connection->run(
      "SELECT extract(epoch FROM max(claimed_at) - min(claimed_at)) * 1000 / count(*), max(cursor) "
      "FROM mailroom_batches WHERE queue = 'mailroom'");
  if (batches[0][1].as<std::int64_t>() >= backlog)
    throw std::runtime_error("the backlog was drained before the last recovery");
  const auto batch = batches[0][0].as<double>();
  const auto added = value_of(behind, "p99") - value_of(empty, "p99");
  return {{.name = "p50", .value = value_of(behind, "p50"), .unit = "ms"},
          {.name = "p99", .value = value_of(behind, "p99"), .unit = "ms"},
          {.name = "empty p99", .value = value_of(empty, "p99"), .unit = "ms"},
          {.name = "batch", .value = batch, .unit = "ms"},
          {.name = "added", .value = added / batch, .unit = "batches"}};
}

}  // namespace

std::vector<Row> queue_rows() {
  return {filtered_row(10, 30'000),
          filtered_row(100, 200'000),
          filtered_row(1'000, 500'000),
          filtered_row(10'000, 500'000),
          {.name = "skip/others",
           .meaning = "a million tokens of another queue skipped, batch limit 1000",
           .prepare = [](Stage& stage) { others_backlog(stage); },
           .measure = measure_queue_skip},
          {.name = "latency/behind",
           .meaning = fmt::format("a recovery behind 500,000 activations, one collector, batch limit {}",
                                  behind_limit),
           .prepare = [](Stage& stage) { behind_database(stage); },
           .measure = measure_behind}};
}

}  // namespace mailroom::bench
