// The routine poll at each poll interval: cheap if there is nothing to do, otherwise a claim.

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::poll_test {
namespace {

const claim::ClaimRequest routine{.limit = 10, .partial = true, .publish_cursor = true, .routine = true};

bool is_idle(db::Connection& connection) {
  return !connection.run("SELECT FROM mailroom_idle_cursor('mailroom')").empty();
}

/// Claims and acknowledges all tokens, and publishes the cursor in jobs.
void drain(claim::QueueSession& session) {
  claim::ClaimRequest request{.limit = 10, .partial = true, .publish_cursor = true};
  while (const auto lease = session.claim(request).lease)
    request.receipt = claim::Receipt{*lease, fetch_due(session, *lease).counts};
}

}  // namespace

TEST_CASE("a queue is idle when it is new, and when all tokens are emitted and jobs has the cursor") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto session = attach(database);
  CHECK(is_idle(*connection));
  CHECK(session->claim(routine).last == 0);

  insert_accounts(*connection, 3);
  CHECK_FALSE(is_idle(*connection));
  const auto lease = session->claim(routine).lease;
  REQUIRE(lease);
  CHECK(fetch_ids(*session, *lease) == Ids{1, 2, 3});
  CHECK_FALSE(is_idle(*connection));
  session->claim({.receipt = claim::Receipt{*lease, {.emitted = 3}}});
  CHECK(is_idle(*connection));
  const auto reply = session->claim(routine);
  CHECK_FALSE(reply.lease);
  CHECK(reply.last == 3);

  connection->run("UPDATE jobs SET last_seq = 1");
  CHECK_FALSE(is_idle(*connection));
  session->claim(routine);
  CHECK(value<int>(*connection, "SELECT last_seq FROM jobs") == 3);
  CHECK(is_idle(*connection));
}

TEST_CASE("a batch that another session abandoned is taken over by a poll too") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  const auto held = attach(database)->claim({.limit = 2}).lease;
  REQUIRE(held);
  CHECK_FALSE(is_idle(*connection));
  const auto session = attach(database);
  const auto taken = session->claim(routine).lease;
  REQUIRE(taken);
  CHECK(taken->batch == held->batch);
}

TEST_CASE("a token that was rolled back does not keep a queue from being idle") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto session = attach(database);
  insert_accounts(*connection, 1, "first");
  drain(*session);
  connection->dry_run([](pqxx::work& transaction) {
    db::Connection::execute(transaction, "INSERT INTO accounts (email, login) VALUES ('a@example.com', 'a')");
  });
  CHECK(value<int>(*connection, "SELECT last_value FROM tokens_id_seq") == 2);
  CHECK(is_idle(*connection));
}

TEST_CASE("a gap whose transaction has rolled back does not keep a queue from being idle") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto session = attach(database);
  const auto open = begin_insert(database, 1, "open");
  insert_accounts(*connection, 1, "first");
  drain(*session);
  CHECK_FALSE(is_idle(*connection));
  open->run("ROLLBACK");
  // The end of a gap waits for all older transactions, also those of other tests on the same server.
  CHECK(eventually([&] {
    session->claim(routine);
    return is_idle(*connection);
  }));
}

TEST_CASE("a dead batch does not keep a queue from being idle") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  const auto session = attach(database);
  REQUIRE(session->claim({.limit = 1, .publish_cursor = true}).lease);
  connection->run("UPDATE mailroom_batches SET dead_at = now()");
  CHECK(is_idle(*connection));
}

TEST_CASE("a poll does not miss a sequence that is behind the cursor") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const auto session = attach(database);
  drain(*session);
  connection->run("SELECT setval('tokens_id_seq', 2)");
  CHECK_THROWS_AS(session->claim(routine), db::DatabaseError);
}

}  // namespace mailroom::test::poll_test
