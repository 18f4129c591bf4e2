// The status of a token, derived from the records of the real queue.

#include "support/history_play.hpp"

namespace mailroom::test::audit_status_test {
namespace {

/// Like emit, but some of its tokens are skipped.
void skip(claim::QueueSession& session, claim::BatchCounts counts) {
  const auto lease = session.claim({.limit = 100, .partial = true}).lease;
  REQUIRE(lease);
  session.claim({.limit = 0, .receipt = claim::Receipt{*lease, counts}});
}

audit::TokenStatus status_of(db::Connection& connection, std::int64_t token) {
  const auto history = audit::read_token_history(connection, token, {.queues = {"mailroom"}});
  REQUIRE(history.tokens.size() == 1);
  return history.tokens.front().status;
}

const char* outcome_of(db::Connection& connection, std::int64_t token) {
  return fate::outcome_name(status_of(connection, token).outcome);
}

}  // namespace

TEST_CASE("the reason why a token was not emitted is found") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 6);
  CHECK(outcome_of(*connection, 1) == std::string("waiting"));
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id = 1");
  CHECK(outcome_of(*connection, 1) == std::string("skipped"));
  CHECK(status_of(*connection, 1).next == fate::Outcome::waiting);
  CHECK(status_of(*connection, 1).reason == "expired");

  SECTION("expired when the cursor reached it") {
    emit(*attach(database));
    const auto status = status_of(*connection, 1);
    CHECK(status.outcome == fate::Outcome::skipped);
    CHECK(status.reason == "expired");
    CHECK(status.reason_certain);
    CHECK(outcome_of(*connection, 2) == std::string("emitted"));
  }
  SECTION("the account had the wrong status, and has changed it since") {
    connection->run("UPDATE tokens SET expires_at = expires_at + 900 WHERE id = 1");
    connection->run("DELETE FROM accounts WHERE id = 1");
    connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 2");
    emit(*attach(database));
    connection->run("UPDATE accounts SET status = 'active' WHERE id = 2");
    const auto status = status_of(*connection, 2);
    CHECK(status.outcome == fate::Outcome::skipped);
    CHECK(status.reason == "wrong status");
    CHECK(status.reason_certain);
    CHECK(outcome_of(*connection, 3) == std::string("emitted"));
    const auto report = audit::read_token_history(*connection, 2, {.queues = {"mailroom"}}).tokens.front();
    CHECK(report.token.state == "due");
  }
  SECTION("one of two possible reasons") {
    connection->run("UPDATE tokens SET consumed_at = created_at WHERE id = 2");
    emit(*attach(database));
    const auto status = status_of(*connection, 2);
    CHECK(status.reason == "consumed");
    CHECK_FALSE(status.reason_certain);
  }
  SECTION("no longer due when the line was written") {
    connection->run("UPDATE tokens SET expires_at = 1 WHERE id < 6");
    skip(*attach(database), {.expired = 1, .skipped_ids = {6}});
    CHECK(outcome_of(*connection, 6) == std::string("skipped"));
  }
  SECTION("the cursor was moved past it") {
    connection->run("SELECT mailroom_rewind('mailroom', 6, 100, '{}')");
    CHECK(outcome_of(*connection, 3) == std::string("moved_past"));
  }
  SECTION("the records of its period were pruned") {
    connection->run("UPDATE mailroom_schema_history SET at = at - interval '1 day'");
    const auto session = attach(database);
    emit(*session, 2);
    emit(*session);
    connection->run("UPDATE tokens SET created_at = created_at - 60");
    CHECK(outcome_of(*connection, 1) == std::string("skipped"));
    connection->run("DELETE FROM mailroom_batches WHERE id = 1");
    CHECK(outcome_of(*connection, 1) == std::string("not_recorded"));
    CHECK(outcome_of(*connection, 5) == std::string("emitted"));
  }
  SECTION("the database is older than the records") {
    connection->run("DROP TABLE mailroom_schema_history");
    connection->run("UPDATE tokens SET created_at = created_at - 60");
    emit(*attach(database));
    CHECK(outcome_of(*connection, 1) == std::string("not_recorded"));
  }
  SECTION("its transaction is committed late") {
    const auto late = begin_insert(database, 1, "late");
    insert_accounts(*connection, 1, "early");
    const auto session = attach(database);
    emit(*session);
    late->run("COMMIT");
    CHECK(outcome_of(*connection, 7) == std::string("in_gap"));
    emit(*session);
    CHECK(outcome_of(*connection, 7) == std::string("emitted"));
  }
}

TEST_CASE("the batch of a token is found even after the token's times were changed") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 4);
  const auto session = attach(database);
  for (int i = 0; i < 4; ++i)
    emit(*session, 1);
  connection->run("UPDATE tokens SET created_at = 1700000000, expires_at = 1700000900 WHERE id IN (2, 3)");
  const auto status = status_of(*connection, 2);
  CHECK(status.times == 1);
  CHECK(status.batch->id == 2);
  CHECK(status_of(*connection, 3).batch->id == 3);
}

TEST_CASE("the status of a token follows its batch: open, taken over, dead") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  auto dying = attach(database);
  const auto held = dying->claim({.limit = 2, .partial = true}).lease;
  REQUIRE(held);
  CHECK(outcome_of(*connection, 1) == std::string("leased"));
  dying.reset();

  SECTION("taken over after days, and acknowledged") {
    connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '2 days'");
    connection->run("UPDATE tokens SET created_at = created_at - 172800, expires_at = expires_at - 172800");
    const auto survivor = attach(database);
    std::optional<claim::Lease> lease;
    for (int i = 0; i < 1000 && !lease; ++i)
      lease = survivor->claim({.limit = 2, .partial = true}).lease;
    REQUIRE(lease);
    CHECK(lease->attempt == 2);
    insert_accounts(*connection, 1, "next");
    survivor->claim({.limit = 0, .receipt = claim::Receipt{*lease, {.expired = 2, .skipped_ids = {1, 2}}}});
    emit(*survivor);
    const auto status = status_of(*connection, 1);
    CHECK(status.outcome == fate::Outcome::maybe_emitted);
    REQUIRE(status.batch);
    CHECK(status.batch->attempts == 2);
  }
  SECTION("dead-lettered after too many attempts") {
    connection->run("UPDATE mailroom_batches SET attempts = 20");
    const auto survivor = attach(database);
    std::optional<std::int64_t> dead;
    for (int i = 0; i < 1000 && !dead; ++i)
      dead = survivor->claim({.limit = 2, .partial = true}).dead;
    REQUIRE(dead);
    CHECK(outcome_of(*connection, 1) == std::string("dead"));
    const auto history = audit::read_batch_history(*connection, held->batch, {});
    CHECK(event_names(history.timeline) == Names{"leased", "dead"});
  }
}

TEST_CASE(
    "a rewind that takes tokens out of an open batch is in the history of the batch and of the tokens") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const auto session = attach(database);
  const auto lease = session->claim({.limit = 3, .partial = true}).lease;
  REQUIRE(lease);
  connection->run("SELECT mailroom_rewind('mailroom', 1, 100, '{}')");
  session->claim({.limit = 0, .receipt = claim::Receipt{*lease, {.emitted = 3}}});

  const auto history = audit::read_batch_history(*connection, lease->batch, {});
  CHECK(history.batch->size == 1);
  CHECK(event_names(history.timeline) == Names{"leased", "rewound", "emitted"});
  CHECK(outcome_of(*connection, 1) == std::string("maybe_emitted"));
  CHECK(outcome_of(*connection, 2) == std::string("waiting"));
  CHECK(event_names(audit::read_token_history(*connection, 1, {.queues = {"mailroom"}}).timeline) ==
        Names{"issued", "emitted"});
  CHECK(event_names(audit::read_token_history(*connection, 2, {.queues = {"mailroom"}}).timeline) ==
        Names{"issued", "rewound"});
}

}  // namespace mailroom::test::audit_status_test
