// What became of a token, told from what the real queue left behind.

#include "support/history_play.hpp"

using namespace mailroom;
using namespace mailroom::test;

namespace {

/// As hand_on, but some of its tokens are left out.
void pass_over(QueueSession& session, BatchCounts counts) {
  const auto lease = session.claim({.limit = 100, .partial = true}).lease;
  REQUIRE(lease);
  session.claim({.limit = 0, .receipt = Receipt{*lease, counts}});
}

TokenFate fate_of(Connection& connection, std::int64_t token) {
  const auto history = read_token_history(connection, token, {.queue = "mailroom"});
  REQUIRE(history.tokens.size() == 1);
  return history.tokens.front().fate;
}

const char* outcome_of(Connection& connection, std::int64_t token) {
  return outcome_name(fate_of(connection, token).outcome);
}

}  // namespace

TEST_CASE("why a token was not handed on") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 6);
  CHECK(outcome_of(*connection, 1) == std::string("waiting"));
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id = 1");
  CHECK(outcome_of(*connection, 1) == std::string("waiting, not due"));

  SECTION("expired when the cursor reached it") {
    hand_on(*attach(database));
    const auto fate = fate_of(*connection, 1);
    CHECK(fate.outcome == Outcome::passed_over);
    CHECK(fate.reason == "expired");
    CHECK(fate.reason_certain);
    CHECK(outcome_of(*connection, 2) == std::string("handed on"));
  }
  SECTION("of an account in the wrong status, which it is no longer") {
    connection->run("UPDATE tokens SET expires_at = expires_at + 900 WHERE id = 1");
    connection->run("DELETE FROM accounts WHERE id = 1");
    connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 2");
    hand_on(*attach(database));
    connection->run("UPDATE accounts SET status = 'active' WHERE id = 2");
    const auto fate = fate_of(*connection, 2);
    CHECK(fate.outcome == Outcome::left_out);
    CHECK(fate.reason == "wrong status");
    CHECK(fate.reason_certain);
    CHECK(outcome_of(*connection, 3) == std::string("handed on"));
    const auto story = read_token_history(*connection, 2, {.queue = "mailroom"}).tokens.front();
    CHECK(story.token.state == "due");
  }
  SECTION("for one of two reasons") {
    connection->run("UPDATE tokens SET consumed_at = created_at WHERE id = 2");
    hand_on(*attach(database));
    const auto fate = fate_of(*connection, 2);
    CHECK(fate.reason == "consumed");
    CHECK_FALSE(fate.reason_certain);
  }
  SECTION("not due any more when the line was written") {
    connection->run("UPDATE tokens SET expires_at = 1 WHERE id < 6");
    pass_over(*attach(database), {.expired = 1, .left_out = {6}});
    CHECK(outcome_of(*connection, 6) == std::string("left out"));
  }
  SECTION("the cursor was moved past it") {
    connection->run("SELECT mailroom_rewind('mailroom', 6, 100, '{}')");
    CHECK(outcome_of(*connection, 3) == std::string("passed by"));
  }
  SECTION("the records of its time were pruned") {
    connection->run("UPDATE mailroom_schema_history SET at = at - interval '1 day'");
    const auto session = attach(database);
    hand_on(*session, 2);
    hand_on(*session);
    connection->run("UPDATE tokens SET created_at = created_at - 60");
    CHECK(outcome_of(*connection, 1) == std::string("passed over"));
    connection->run("DELETE FROM mailroom_batches WHERE id = 1");
    CHECK(outcome_of(*connection, 1) == std::string("not recorded"));
    CHECK(outcome_of(*connection, 5) == std::string("handed on"));
  }
  SECTION("the database is older than the records") {
    connection->run("DROP TABLE mailroom_schema_history");
    connection->run("UPDATE tokens SET created_at = created_at - 60");
    hand_on(*attach(database));
    CHECK(outcome_of(*connection, 1) == std::string("not recorded"));
  }
  SECTION("its transaction is committed late") {
    const auto late = database.connect();
    late->run("BEGIN");
    insert_accounts(*late, 1, "late");
    insert_accounts(*connection, 1, "early");
    const auto session = attach(database);
    hand_on(*session);
    late->run("COMMIT");
    CHECK(outcome_of(*connection, 7) == std::string("waiting again"));
    hand_on(*session);
    CHECK(outcome_of(*connection, 7) == std::string("handed on"));
  }
}

TEST_CASE("the batch of a token is found where its times were changed afterwards, too") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 4);
  const auto session = attach(database);
  for (int i = 0; i < 4; ++i)
    hand_on(*session, 1);
  connection->run("UPDATE tokens SET created_at = 1700000000, expires_at = 1700000900 WHERE id IN (2, 3)");
  const auto fate = fate_of(*connection, 2);
  CHECK(fate.times == 1);
  CHECK(fate.batch->id == 2);
  CHECK(fate_of(*connection, 3).batch->id == 3);
}

TEST_CASE("a batch that is open, was taken over, or was given up") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  auto dying = attach(database);
  const auto held = dying->claim({.limit = 2, .partial = true}).lease;
  REQUIRE(held);
  CHECK(outcome_of(*connection, 1) == std::string("in open batch"));
  dying.reset();

  SECTION("taken over after days, and acknowledged") {
    connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '2 days'");
    connection->run("UPDATE tokens SET created_at = created_at - 172800, expires_at = expires_at - 172800");
    const auto survivor = attach(database);
    std::optional<Lease> lease;
    for (int i = 0; i < 1000 && !lease; ++i)
      lease = survivor->claim({.limit = 2, .partial = true}).lease;
    REQUIRE(lease);
    CHECK(lease->attempt == 2);
    insert_accounts(*connection, 1, "next");
    survivor->claim({.limit = 0, .receipt = Receipt{*lease, {.expired = 2, .left_out = {1, 2}}}});
    hand_on(*survivor);
    const auto fate = fate_of(*connection, 1);
    CHECK(fate.outcome == Outcome::maybe_handed_on);
    REQUIRE(fate.batch);
    CHECK(fate.batch->attempts == 2);
  }
  SECTION("set aside after too many attempts") {
    connection->run("UPDATE mailroom_batches SET attempts = 20");
    const auto survivor = attach(database);
    std::optional<std::int64_t> set_aside;
    for (int i = 0; i < 1000 && !set_aside; ++i)
      set_aside = survivor->claim({.limit = 2, .partial = true}).set_aside;
    REQUIRE(set_aside);
    CHECK(outcome_of(*connection, 1) == std::string("set aside"));
    const auto history = read_batch_history(*connection, held->batch, {});
    CHECK(words(history.timeline) == Words{"handed out", "set aside"});
  }
}

TEST_CASE("a rewind that takes tokens out of an open batch belongs to the batch and to the tokens") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const auto session = attach(database);
  const auto lease = session->claim({.limit = 3, .partial = true}).lease;
  REQUIRE(lease);
  connection->run("SELECT mailroom_rewind('mailroom', 1, 100, '{}')");
  session->claim({.limit = 0, .receipt = Receipt{*lease, {.emitted = 3}}});

  const auto history = read_batch_history(*connection, lease->batch, {});
  CHECK(history.batch->size == 1);
  CHECK(words(history.timeline) == Words{"handed out", "rewound", "handed on"});
  CHECK(outcome_of(*connection, 1) == std::string("maybe handed on"));
  CHECK(outcome_of(*connection, 2) == std::string("waiting"));
  CHECK(words(read_token_history(*connection, 1, {.queue = "mailroom"}).timeline) ==
        Words{"issued", "handed on"});
  CHECK(words(read_token_history(*connection, 2, {.queue = "mailroom"}).timeline) ==
        Words{"issued", "rewound"});
}
