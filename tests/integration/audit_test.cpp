// The history of accounts, tokens and batches, written by the real queue and read back.

#include <algorithm>

#include "cmd/audit/audit_report.hpp"
#include "schema/migration_plan.hpp"
#include "support/history_play.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::audit_test {
namespace {

std::int64_t recover(db::Connection& connection, int account) {
  return connection
      .run("INSERT INTO tokens (account, action) VALUES ($1, 'password_recovery') RETURNING id",
           account)[0][0]
      .as<std::int64_t>();
}

std::string code_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + " " + error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("the history of an account begins with its sign-up") {
  TestDatabase database;
  const auto connection = database.connect("application");
  const auto session = attach(database);
  insert_accounts(*connection, 3);
  emit(*session);
  connection->run("UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id = 1");
  const auto recovery = recover(*connection, 1);
  emit(*session);
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 1");
  connection->run(
      "DO $$BEGIN SET LOCAL mailroom.actor = 'alice@desk'; SET LOCAL mailroom.reason = 'a mistake'; "
      "UPDATE accounts SET status = 'active' WHERE id = 1; END$$");
  connection->run(
      "DO $$BEGIN SET LOCAL mailroom.actor = 'bob@desk'; SET LOCAL mailroom.reason = 'sender was down'; "
      "PERFORM mailroom_rewind('mailroom', 3, 100, '{}'); END$$");
  emit(*session);
  connection->run("SELECT mailroom_replay('mailroom', ARRAY[4::bigint], '{}')");

  const auto history = audit::read_account_history(*connection, 1, {}, {.queues = {"mailroom"}});
  REQUIRE(history.account);
  CHECK(history.account->login == "user1");
  CHECK(history.tokens_total == 2);
  REQUIRE(history.tokens.size() == 2);
  CHECK(history.tokens[0].token.id == recovery);
  CHECK(history.tokens[0].status.times == 2);
  CHECK(history.tokens[0].status.next == fate::Outcome::in_replay);
  CHECK(history.tokens[1].status.outcome == fate::Outcome::emitted);
  CHECK(history.tokens[1].token.state == "consumed");

  auto found = event_names(history.timeline);
  auto expected = Names{"created", "issued",    "emitted",  "consumed", "activated", "issued",
                        "emitted", "suspended", "restored", "emitted",  "rewound",   "replayed"};
  CHECK(found.front() == "created");
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  CHECK(found == expected);

  std::vector<feed::Operation> operations;
  for (const auto& entry : history.timeline.entries) {
    if (const auto* operation = entry.operation()) operations.push_back(*operation);
  }
  REQUIRE(operations.size() == 4);
  CHECK(operations[0].actor.rfind("application ", 0) == 0);
  CHECK(operations[0].reason.empty());
  CHECK(operations[1].actor == "alice@desk");
  CHECK(operations[1].reason == "a mistake");
  CHECK(operations[2].actor == "bob@desk");
  CHECK(operations[2].reason == "sender was down");
  CHECK(operations[2].tokens == std::vector<selection::IdRange>{{recovery, recovery + 1}});
  CHECK(operations[3].kind == feed::EventKind::replayed);
}

TEST_CASE("a removed account leaves its record of operations, and its tokens leave their batches") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto session = attach(database);
  insert_accounts(*connection, 3);
  emit(*session);
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 2");
  connection->run("DELETE FROM accounts WHERE id IN (2, 3)");

  const auto history = audit::read_account_history(*connection, 2, {}, {});
  CHECK_FALSE(history.account);
  CHECK(event_names(history.timeline) == Names{"suspended"});
  CHECK(code_of([&] { audit::read_account_history(*connection, 3, {}, {}); }).substr(0, 23) ==
        "8 there is no account 3");

  const auto token = audit::read_token_history(*connection, 2, {.queues = {"mailroom"}});
  CHECK_FALSE(token.tokens.front().token.exists);
  CHECK(token.tokens.front().status.outcome == fate::Outcome::emitted);
  CHECK(event_names(token.timeline) == Names{"emitted"});
}

TEST_CASE("an object that does not exist is reported as missing") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  connection->run("DELETE FROM accounts WHERE id = 1");
  CHECK(code_of([&] { audit::read_token_history(*connection, 99, {}); }) == "8 there is no token 99");
  CHECK(code_of([&] { audit::read_token_history(*connection, 1, {}); }) ==
        "8 there is no token 1, and no record of one");
  CHECK(code_of([&] { audit::read_batch_history(*connection, 7, {}); }) ==
        "8 there is no record of a batch 7");
}

TEST_CASE("the history of a period has totals, operations, migrations, and batches on request") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5);
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id = 1");
  const auto session = attach(database);
  emit(*session, 2);
  emit(*session, 2);
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id IN (1, 2)");

  const auto overview = audit::read_overview(*connection, {});
  REQUIRE(overview.queues.size() == 1);
  CHECK(overview.queues[0].batches == 2);
  CHECK(overview.queues[0].emitted == 4);
  CHECK(overview.queues[0].skipped.total() == 1);
  CHECK(overview.queues[0].open == 0);
  const auto migrations =
      static_cast<std::int64_t>(schema::embedded_migrations().size()) + 1;  // and the functions
  CHECK(static_cast<std::int64_t>(overview.timeline.entries.size()) == migrations + 2);
  CHECK(overview.timeline.omitted == 0);

  const auto all = audit::read_overview(*connection, {.batches = true});
  CHECK(static_cast<std::int64_t>(all.timeline.entries.size()) == migrations + 4);
  const auto few = audit::read_overview(*connection, {.limit = 3, .batches = true});
  CHECK(event_names(few.timeline) == Names{"emitted", "suspended", "suspended"});
  CHECK(few.timeline.omitted == migrations + 1);

  connection->run("UPDATE mailroom_operations SET at = at - interval '25 hours'");
  connection->run("UPDATE mailroom_schema_history SET at = at - interval '25 hours'");
  connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '25 hours'");
  const auto day = audit::read_overview(*connection, {.batches = true});
  CHECK(day.timeline.entries.empty());
  CHECK(day.queues.empty());
  const auto before = audit::read_overview(*connection, {.since = "26h", .until = "24h", .batches = true});
  CHECK(static_cast<std::int64_t>(before.timeline.entries.size()) == migrations + 4);
  CHECK(code_of([&] { audit::read_overview(*connection, {.since = "1h", .until = "2h"}); }).front() == '2');
}

TEST_CASE("a schema that another tool made has no history") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("DROP TABLE mailroom_schema_history");
  CHECK(audit::read_overview(*connection, {}).timeline.entries.empty());
}

TEST_CASE("operations recorded by hand do not break any query") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  connection->run(
      "INSERT INTO mailroom_operations (kind, actor, details) VALUES ('rewind', 'x', '{}'), "
      "('rewind', 'x', '{\"cut\": 7}'), ('replay', 'x', '{\"other\": [1]}'), ('prune', 'x', '[]')");
  connection->run(R"(
INSERT INTO mailroom_operations (kind, actor, details) VALUES
  ('replay', 'x', '{"ids": "all"}'), ('replay', 'x', '{"ids": "{[5,3)}"}'), ('replay', 'x', '{"ids": [1]}'),
  ('rewind', 'x', '{"cursor_before": "a", "cursor_after": 1}'),
  ('rewind', 'x', '{"cursor_before": 1e30, "cursor_after": 1}'),
  ('rewind', 'x', '{"cursor_before": 1, "cursor_after": {}, "cut": [{"batch": "x"}, 7]}'),
  ('rewind', 'x', '{"sequence_before": "a"}'), ('rewind', 'x', '{"sequence_before": 1e30}'))");
  CHECK(event_names(audit::read_token_history(*connection, 1, {.queues = {"mailroom"}}).timeline) ==
        Names{"issued"});
  const auto overview = audit::read_overview(*connection, {});
  CHECK(overview.timeline.entries.size() >= 12);
  CHECK_FALSE(cmd::render_text(overview, 80).empty());
  CHECK_FALSE(cmd::render_json(overview).empty());
}

TEST_CASE("the collector that held a batch before a take-over stays on record, with the time") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  std::vector<int> pids;
  const std::vector<std::string> names{"mailroom collect@mail1:7", "mailroom collect@mail2:8"};
  for (const auto& name : names) {
    const auto dying = attach(database);
    REQUIRE(eventually([&] { return dying->claim({.limit = 2, .partial = true}).lease.has_value(); }));
    connection->run("UPDATE mailroom_batches SET claimed_by = $1", name);
    pids.push_back(value<int>(*connection, "SELECT collector FROM mailroom_batches"));
  }
  const auto survivor = attach(database);
  std::optional<claim::Lease> lease;
  REQUIRE(
      eventually([&] { return (lease = survivor->claim({.limit = 2, .partial = true}).lease).has_value(); }));
  CHECK(lease->attempt == 3);
  survivor->claim({.limit = 0, .receipt = claim::Receipt{*lease, fetch_due(*survivor, *lease).counts}});

  const auto history = audit::read_batch_history(*connection, lease->batch, {});
  CHECK(event_names(history.timeline) ==
        Names{"leased", "abandoned", "leased", "abandoned", "leased", "emitted"});
  const auto& held = history.batch->abandoned;
  REQUIRE(held.size() == 2);
  for (std::size_t i = 0; i < held.size(); ++i) {
    CHECK(held[i].attempt == static_cast<int>(i) + 1);
    CHECK(held[i].claimed_by == names[i]);
    CHECK(held[i].collector == pids[i]);
  }
  CHECK(held[0].claimed_at < held[0].taken_over_at);
  CHECK(held[0].taken_over_at == held[1].claimed_at);
  CHECK(held[1].taken_over_at == history.batch->claimed_at);

  const auto token = audit::read_token_history(*connection, 2, {.queues = {"mailroom"}});
  CHECK(event_names(token.timeline) == Names{"issued", "abandoned", "abandoned", "emitted"});
  const auto text = cmd::render_text(token, 0);
  CHECK(text.find("token 2 in batch 1 by collect@mail1:7, leased ") != std::string::npos);
  CHECK(text.find("token 2 in batch 1 by collect@mail2:8 at attempt 2, leased ") != std::string::npos);
  const auto json = cmd::render_json(token);
  CHECK(json.find(R"("event":"abandoned","account":null,"tokens":[2],"batch":1,"queue":"mailroom",)"
                  R"("actor":"mailroom collect@mail1:7")") != std::string::npos);

  const auto overview = audit::read_overview(*connection, {.batches = true});
  const auto all = event_names(overview.timeline);
  CHECK(std::count(all.begin(), all.end(), "abandoned") == 2);
}

TEST_CASE("attempts of batches that were never abandoned are not recorded") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto session = attach(database);
  insert_accounts(*connection, 2);
  emit(*session, 1);
  emit(*session, 10);
  CHECK(value<int>(*connection, "SELECT count(earlier_attempts) FROM mailroom_batches") == 0);
  CHECK(event_names(audit::read_batch_history(*connection, 1, {}).timeline) == Names{"leased", "emitted"});
}

TEST_CASE("an infinite time in the records is shown as one outside the years 0000 to 9999") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto session = attach(database);
  insert_accounts(*connection, 2);
  emit(*session, 1);
  emit(*session, 1);
  connection->run("UPDATE mailroom_batches SET emitted_at = 'infinity' WHERE id = 1");
  connection->run("UPDATE mailroom_batches SET claimed_at = '-infinity' WHERE id = 2");
  connection->run(
      "INSERT INTO mailroom_operations (kind, actor, account, at) VALUES ('suspend', 'x', 1, 'infinity')");
  const auto history = audit::read_batch_history(*connection, 1, {});
  CHECK(event_names(history.timeline) == Names{"leased", "emitted"});
  CHECK(cmd::render_text(history, 0).find("emitted after the year 9999") != std::string::npos);
  CHECK(cmd::render_json(history).find(R"("emitted_at":null)") != std::string::npos);
  CHECK(cmd::render_text(audit::read_batch_history(*connection, 2, {}), 0).find("before the year 0") !=
        std::string::npos);
  CHECK(event_names(audit::read_account_history(*connection, 1, {}, {}).timeline) ==
        Names{"created", "issued", "suspended", "emitted"});
  CHECK(event_names(audit::read_token_history(*connection, 2, {}).timeline).front() == "issued");
  CHECK(audit::read_overview(*connection, {.batches = true}).timeline.entries.size() > 0);
}

}  // namespace mailroom::test::audit_test
