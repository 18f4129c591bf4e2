// The claim, one decision at a time, on sessions that the test drives step by step.

#include "support/catch.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::claim_test {

TEST_CASE("a claim takes full batches, and a remainder only on request") {
  TestDatabase database;
  insert_accounts(*database.connect(), 7);
  const auto session = attach(database);

  const auto first = session->claim({.limit = 3});
  REQUIRE(first.lease);
  CHECK(first.more);
  CHECK(fetch_ids(*session, *first.lease) == Ids{1, 2, 3});
  const auto second = session->claim({.limit = 3, .receipt = claim::Receipt{*first.lease, {.emitted = 3}}});
  REQUIRE(second.lease);
  CHECK(fetch_ids(*session, *second.lease) == Ids{4, 5, 6});
  const auto none = session->claim({.limit = 3, .receipt = claim::Receipt{*second.lease, {.emitted = 3}}});
  CHECK_FALSE(none.lease);
  CHECK(none.pending == 1);
  const auto rest = session->claim({.limit = 3, .partial = true});
  REQUIRE(rest.lease);
  CHECK_FALSE(rest.more);
  CHECK(fetch_ids(*session, *rest.lease) == Ids{7});
}

TEST_CASE("a token below the cursor that is committed late is claimed as soon as it is visible") {
  TestDatabase database;
  const auto late = database.connect();
  const auto session = attach(database);
  late->run("BEGIN");
  insert_accounts(*late, 2, "late");
  insert_accounts(*database.connect(), 2, "early");

  const auto early = session->claim({.limit = 10, .partial = true});
  REQUIRE(early.lease);
  CHECK(fetch_ids(*session, *early.lease) == Ids{3, 4});
  CHECK_FALSE(
      session->claim({.limit = 10, .partial = true, .receipt = claim::Receipt{*early.lease, {}}}).lease);
  late->run("COMMIT");
  const auto caught = session->claim({.limit = 10, .partial = true});
  REQUIRE(caught.lease);
  CHECK(fetch_ids(*session, *caught.lease) == Ids{1, 2});
}

TEST_CASE("a session holds one open batch: without an acknowledgement it is leased again as a new attempt") {
  TestDatabase database;
  insert_accounts(*database.connect(), 4);
  const auto session = attach(database);
  const auto first = session->claim({.limit = 2});
  REQUIRE(first.lease);
  const auto again = session->claim({.limit = 2});
  REQUIRE(again.lease);
  CHECK(again.lease->batch == first.lease->batch);
  CHECK(again.lease->attempt == 2);
  CHECK(fetch_ids(*session, *first.lease).empty());
  CHECK(fetch_ids(*session, *again.lease) == Ids{1, 2});
}

TEST_CASE("a lease lasts exactly as long as its session") {
  TestDatabase database;
  insert_accounts(*database.connect(), 4);
  auto dying = attach(database);
  const auto survivor = attach(database);
  const auto held = dying->claim({.limit = 2});
  REQUIRE(held.lease);
  const auto other = survivor->claim({.limit = 2});
  REQUIRE(other.lease);
  CHECK(other.lease->batch != held.lease->batch);

  dying.reset();
  claim::Receipt receipt{*other.lease, {.emitted = 2}};
  std::optional<claim::Lease> abandoned;
  for (int i = 0; i < 1000 && !abandoned; ++i) {
    abandoned = survivor->claim({.limit = 2, .receipt = receipt}).lease;
  }
  REQUIRE(abandoned);
  CHECK(abandoned->batch == held.lease->batch);
  CHECK(abandoned->attempt == 2);
}

TEST_CASE("a claim that may not take over leaves abandoned batches alone") {
  TestDatabase database;
  insert_accounts(*database.connect(), 2);
  attach(database)->claim({.limit = 2});
  const auto session = attach(database);
  CHECK_FALSE(session->claim({.limit = 2, .partial = true, .take_over = false}).lease);
}

TEST_CASE("an acknowledgement is valid after a reconnect, can be repeated, and is void after a take-over") {
  TestDatabase database;
  insert_accounts(*database.connect(), 4);
  auto session = attach(database);
  const auto held = session->claim({.limit = 4});
  REQUIRE(held.lease);
  session = attach(database);
  const claim::ClaimRequest acknowledge{.receipt = claim::Receipt{*held.lease, {.emitted = 4}}};
  CHECK_FALSE(session->claim(acknowledge).receipt_void);
  CHECK_FALSE(session->claim(acknowledge).receipt_void);
  const auto connection = database.connect();
  CHECK(value<int>(*connection, "SELECT sum(emitted) FROM mailroom_batches") == 4);

  insert_accounts(*connection, 4, "more");
  const auto taken = session->claim({.limit = 4});
  const auto retaken = session->claim({.limit = 4});
  REQUIRE(retaken.lease);
  CHECK(session->claim({.receipt = claim::Receipt{*taken.lease, {.emitted = 4}}}).receipt_void);
  CHECK_FALSE(session->claim({.receipt = claim::Receipt{*retaken.lease, {.emitted = 4}}}).receipt_void);
}

TEST_CASE("tokens that are not due are skipped and counted by reason") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5);
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id = 1");
  connection->run("UPDATE tokens SET consumed_at = 1 WHERE id = 2");
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 3");
  const auto session = attach(database);
  const auto reply = session->claim({.limit = 10, .partial = true});
  REQUIRE(reply.lease);
  CHECK(fetch_ids(*session, *reply.lease) == Ids{4, 5});
  const auto row = connection->run(
      "SELECT skipped_expired, skipped_consumed, cursor FROM mailroom_batches ORDER BY id DESC")[0];
  CHECK(row[0].as<int>() == 1);
  CHECK(row[1].as<int>() == 1);
  CHECK(row[2].as<int>() == 5);
}

TEST_CASE("a token of an account in the wrong status is fetched with that reason, and recorded as skipped") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 2");
  const auto session = attach(database);
  const auto reply = session->claim({.limit = 10, .partial = true});
  REQUIRE(reply.lease);
  std::vector<claim::TokenState> states;
  session->fetch(*reply.lease, [&](const claim::TokenRow& row) { states.push_back(row.state); });
  CHECK(states == std::vector<claim::TokenState>{claim::TokenState::due, claim::TokenState::wrong_status,
                                                 claim::TokenState::due});
  const claim::Receipt receipt{*reply.lease, {.emitted = 2, .wrong_status = 1, .skipped_ids = {2}}};
  session->claim({.receipt = receipt});
  const auto row = connection->run("SELECT ids, skipped_ids, skipped_status FROM mailroom_batches")[0];
  CHECK(row[0].c_str() == std::string("{[1,2),[3,4)}"));
  CHECK(row[1].c_str() == std::string("{[2,3)}"));
  CHECK(row[2].as<int>() == 1);
}

TEST_CASE(
    "a claim reads at most ten thousand tokens that are not due, and the next one reaches those after them") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 12000);
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id <= 11990");
  const auto session = attach(database);
  const auto first = session->claim({.limit = 5});
  CHECK_FALSE(first.lease);
  CHECK(first.more);
  const auto second = session->claim({.limit = 5});
  REQUIRE(second.lease);
  CHECK(fetch_ids(*session, *second.lease) == Ids{11991, 11992, 11993, 11994, 11995});
  CHECK(value<int>(*connection, "SELECT sum(skipped_expired) FROM mailroom_batches") == 11990);
}

TEST_CASE("a claim with nothing to do uses no transaction id, so an idle collector writes nothing") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const auto session = attach(database);
  const auto reply = session->claim({.limit = 2});
  session->claim(
      {.limit = 2, .publish_cursor = true, .receipt = claim::Receipt{*reply.lease, {.emitted = 2}}});
  connection->run("SELECT mailroom_attach('mailroom')");
  const bool idle = connection->transact([](pqxx::work& transaction) {
    db::Connection::execute(
        transaction,
        "SELECT mailroom_claim(pg_backend_pid(), 'mailroom', 2, false, true, true, false, NULL, NULL)");
    return db::Connection::execute(transaction, "SELECT pg_current_xact_id_if_assigned() IS NULL")[0][0]
        .as<bool>();
  });
  CHECK(idle);
}

TEST_CASE("last_seq follows the cursor, and a locked row of jobs is not waited for") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const auto session = attach(database);
  const auto locker = database.connect();
  locker->run("BEGIN");
  locker->run("SELECT FROM jobs FOR UPDATE");
  const auto reply = session->claim({.limit = 3, .publish_cursor = true});
  REQUIRE(reply.lease);
  CHECK(value<int>(*connection, "SELECT last_seq FROM jobs") == 0);
  locker->run("COMMIT");
  session->claim(
      {.limit = 3, .publish_cursor = true, .receipt = claim::Receipt{*reply.lease, {.emitted = 3}}});
  CHECK(value<int>(*connection, "SELECT last_seq FROM jobs") == 3);
}

TEST_CASE("a queue is a row of jobs, and an unknown queue is a configuration error") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  connection->run("INSERT INTO jobs (job_type, last_seq) VALUES ('second', 1)");
  const auto first = attach(database);
  const auto second = attach(database, "second");
  CHECK(fetch_ids(*first, *first->claim({.limit = 3}).lease) == Ids{1, 2, 3});
  CHECK(fetch_ids(*second, *second->claim({.limit = 2}).lease) == Ids{2, 3});
  try {
    attach(database, "nowhere");
    FAIL("an unknown queue was accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::configuration);
    CHECK(std::string(error.what()) == "unknown queue \"nowhere\"");
  }
}

TEST_CASE("a batch that fails again and again is dead-lettered, and the next one is leased") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 4);
  const auto session = attach(database);
  const auto first = session->claim({.limit = 2});
  for (int attempt = 2; attempt <= 20; ++attempt) {
    CHECK(session->claim({.limit = 2}).lease == claim::Lease{first.lease->batch, attempt, "mailroom"});
  }
  const auto next = session->claim({.limit = 2});
  CHECK(next.dead == first.lease->batch);
  REQUIRE(next.lease);
  CHECK(fetch_ids(*session, *next.lease) == Ids{3, 4});
}

}  // namespace mailroom::test::claim_test
