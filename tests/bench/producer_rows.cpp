// What notifications cost the sessions that insert.

#include <csignal>
#include <fmt/format.h>

#include "bench/databases.hpp"
#include "bench/pgbench.hpp"
#include "bench/row.hpp"

namespace mailroom::bench {
namespace {

const std::string producer_database = "producers";

enum class Notifying { none, ours };

/// The same inserts each time, into emptied tables.
void arrange(Stage& stage, Notifying notifying) {
  const auto connection = stage.connect(producer_database);
  connection->run("TRUNCATE tokens, mailroom_batches, mailroom_gaps RESTART IDENTITY");
  connection->run("UPDATE jobs SET last_seq = 0");
  connection->run(std::string("ALTER TABLE tokens ") + (notifying == Notifying::ours ? "ENABLE" : "DISABLE") +
                  " TRIGGER after_token_inserted");
}

std::string insert_statement(const Stage& stage) {
  return fmt::format(
      "\\set account 3 * random(0, {}) + 1\n"
      "INSERT INTO tokens (account, action) VALUES (:account, 'activation');\n",
      account_count(stage) / 3 - 1);
}

/// Beside a collector.
Figures measure_producers(Stage& stage, int clients, Notifying notifying) {
  arrange(stage, notifying);
  // Large batches and a short timeout: the collector emits everything at little cost and never idles.
  auto setup = stage.mailroom(producer_database,
                              {"collect", "-q", "--batch-limit", "1000", "--batch-timeout", "100ms"});
  setup.output = stage.path("collected0");
  Process collector(std::move(setup));
  const auto rate = statements_per_second(stage, producer_database, clients, insert_statement(stage));
  collector.signal(SIGTERM);
  collector.wait();
  return {{.value = rate, .unit = "commits/s"}};
}

Row producer_row(int clients, const std::string& name, const std::string& meaning, Notifying notifying) {
  return {.name = fmt::format("producers/{}/{}", clients, name),
          .meaning = fmt::format("single inserts by {} client{}: {}, a collector polling", clients,
                                 clients == 1 ? "" : "s", meaning),
          .prepare = [](Stage& stage) { make_live_database(stage, producer_database); },
          .measure = [=](Stage& stage) { return measure_producers(stage, clients, notifying); }};
}

}  // namespace

std::vector<Row> producer_rows() {
  std::vector<Row> rows;
  for (const int clients : {1, 8, 32}) {
    rows.push_back(producer_row(clients, "none", "no notifying trigger", Notifying::none));
    rows.push_back(producer_row(clients, "ours", "our trigger", Notifying::ours));
  }
  return rows;
}

}  // namespace mailroom::bench
