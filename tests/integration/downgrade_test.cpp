// Down to every version from data that only the newest can make, and up again: the plan's promise holds.

#include <fmt/format.h>

#include "schema/migration.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/several_queues.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::downgrade_test {
namespace {

/// Data of every kind. Of 60 activations the queue mailroom has emitted some; token 61 is a recovery, which
/// only the queue recovery takes.
void make_data(const TestDatabase& database, db::Connection& connection) {
  insert_accounts(connection, 60);
  connection.run("UPDATE accounts SET status = 'active' WHERE id = 1");
  connection.run("SELECT mailroom_set_queue('mailroom', $1::jsonb, 'token_insert')",
                 std::string(activations_only));
  connection.run(
      "SELECT mailroom_set_budget('shared', '{\"tokens\": 5, \"milliseconds\": 1000, \"burst\": 5}', 'c')");
  make_queue(connection, "recovery",
             R"({"actions": ["password_recovery"], "priority": 10, "budget": "shared",
                 "rate": {"tokens": 1, "milliseconds": 1000, "burst": 1}})");
  make_queue(connection, "copy", activations_only);
  make_queue(connection, "gone", activations_only);
  drop_queue(connection, "gone");
  pause_queue(connection, "copy");
  const auto late = database.connect();
  late->run("BEGIN");
  late->run("INSERT INTO tokens (account, action) VALUES (1, 'password_recovery')");
  insert_accounts(connection, 5, "more");
  const auto session = attach(database);
  const auto first = session->claim({.limit = 40});
  REQUIRE(first.lease);
  session->claim({.limit = 26, .partial = true, .receipt = claim::Receipt{*first.lease, {.emitted = 40}}});
  late->run("COMMIT");
  connection.run("UPDATE accounts SET status = 'suspended' WHERE id = 5");
  connection.run("UPDATE tokens SET consumed_at = created_at WHERE id = 7");
  connection.run(
      "INSERT INTO mailroom_deliveries (queue, token, state, not_before, batch) "
      "VALUES ('mailroom', 9, 'deferred', now(), 1), ('mailroom', 10, 'accepted', NULL, 1)");
  connection.run("INSERT INTO mailroom_sinks VALUES ('relay:25', 1, now(), now(), now(), 'down')");
  connection.run("SELECT mailroom_create_action('magic_link', path => '/magic')");
  connection.run("SELECT mailroom_send(ARRAY['a@x.example'], subject => 'a', text => 'a')");
  connection.run("INSERT INTO tokens (account, action) VALUES (2, 'magic_link')");
}

}  // namespace

TEST_CASE("from data of every kind the schema goes down to every version, and up again") {
  const auto newest = schema::embedded_migrations().back().version;
  for (auto version = newest - 1; version >= 0; --version) {
    CAPTURE(version);
    TestDatabase database;
    const auto connection = database.connect();
    make_data(database, *connection);
    OperatorRig rig(database);
    const auto down = rig.mailroom({"migrate", "goto", std::to_string(version), "--yes"});
    INFO(down.errors);
    REQUIRE(down.status == 0);
    // The token of a message goes, and that of another action.
    CHECK(value<int>(*connection, "SELECT count(*) FROM tokens") == 66);
    CHECK(value<int>(*connection, "SELECT count(*) FROM accounts") == 65);
    if (version < 7) {
      CHECK(down.errors.find("jobs WHERE job_type <> 'mailroom'") != std::string::npos);
      // Token 9 waits for another attempt, and 41 to 66 are in a batch that is leased.
      CHECK(
          value<std::string>(*connection, "SELECT string_agg(job_type || ' ' || last_seq, ',') FROM jobs") ==
          "mailroom 8");
    }
    CHECK(rig.mailroom({"migrate"}).status == 0);
    CHECK(rig.mailroom({"migrate", "verify"}).status == 0);
    const auto emits = rig.mailroom({"collect", "--once"});
    INFO(emits.errors);
    CHECK(emits.status == 0);
  }
  TestDatabase database;
  make_data(database, *database.connect());
  OperatorRig rig(database);
  CHECK(rig.mailroom({"migrate", "down", "--all", "--yes"}).status == 0);
  CHECK(rig.mailroom({"migrate"}).status == 0);
}

TEST_CASE("below the queue's tables no due token is lost that only another queue takes") {
  TestDatabase database;
  const auto connection = database.connect();
  OperatorRig rig(database);
  insert_accounts(*connection, 20);
  connection->run("UPDATE accounts SET status = 'active' WHERE id = 3");
  connection->run("SELECT mailroom_set_queue('mailroom', $1::jsonb, 'token_insert')",
                  std::string(activations_only));
  make_queue(*connection, "recovery", recoveries_only, 20);
  connection->run("INSERT INTO tokens (account, action) VALUES (3, 'password_recovery')");
  insert_accounts(*connection, 5, "more");
  REQUIRE(rig.mailroom({"collect", "--once"}).status == 0);
  REQUIRE(value<int>(*connection, "SELECT (mailroom_queue_state('mailroom')).cursor") == 26);
  const bool drops = GENERATE(false, true);
  if (drops) drop_queue(*connection, "mailroom");
  REQUIRE(rig.mailroom({"migrate", "goto", "6", "--yes"}).status == 0);
  CHECK(value<int>(*connection, "SELECT last_seq FROM jobs WHERE job_type = 'mailroom'") == 20);
}

TEST_CASE("a schema goes down below the queue's tables without any queue") {
  TestDatabase database;
  const auto connection = database.connect();
  drop_queue(*connection, "mailroom");
  OperatorRig rig(database);
  REQUIRE(rig.mailroom({"migrate", "goto", "6", "--yes"}).status == 0);
  CHECK(rig.mailroom({"migrate"}).status == 0);
}

}  // namespace mailroom::test::downgrade_test
