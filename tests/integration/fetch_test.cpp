// The tokens of a batch: returned with the claim, or streamed if they are many.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <future>

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::fetch_test {

TEST_CASE("a large batch, which is streamed, holds the same rows as a small one") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1200);
  connection->run(
      "UPDATE accounts SET email = 'back\\slash, \"ü\" ' || id, status = 'active' WHERE id % 3 = 0");
  connection->run(
      "INSERT INTO tokens (account, action) SELECT id, 'password_recovery' FROM accounts WHERE id % 3 = 0");
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id % 100 = 1");
  const auto text_of = [](const claim::TokenRow& row) {
    return fmt::format("{} {} {:02x} {} {} {} {} {}", row.id, row.action->name,
                       fmt::join(row.secret.value(), ""), row.code, row.expires_at, row.email, row.login,
                       static_cast<int>(row.state));
  };
  const auto small = rows_at(database, *connection, 300, text_of);
  CHECK(small.size() >= 1500);
  CHECK(rows_at(database, *connection, 10'000, text_of) == small);
}

TEST_CASE("a claim that waited for the queue's lock sees tokens committed meanwhile") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto other = database.connect();
  insert_accounts(*connection, 1, "early");
  const auto session = attach(database);
  other->run("SELECT pg_advisory_lock(mailroom_lock_class('queue'), hashtext('mailroom'))");
  auto claiming = std::async(std::launch::async, [&] { return session->claim({.limit = 3}); });
  REQUIRE(eventually([&] {
    return locks(*connection, "NOT granted AND classid = mailroom_lock_class('queue')::oid") == 1;
  }));
  insert_accounts(*connection, 2, "late");
  other->run("SELECT pg_advisory_unlock(mailroom_lock_class('queue'), hashtext('mailroom'))");
  const auto reply = claiming.get();
  REQUIRE(reply.lease);
  CHECK(fetch_ids(*session, *reply.lease) == Ids{1, 2, 3});
}

TEST_CASE("a token that stops being due before its batch is leased again is returned with the reason") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  const auto session = attach(database);
  REQUIRE(session->claim({.limit = 2}).lease);
  connection->run("UPDATE tokens SET consumed_at = 1 WHERE id = 1");
  const auto again = session->claim({.limit = 2});
  REQUIRE(again.lease);
  std::vector<claim::TokenState> states;
  session->fetch(*again.lease, [&](const claim::TokenRow& row) { states.push_back(row.state); });
  CHECK(states == std::vector<claim::TokenState>{claim::TokenState::consumed, claim::TokenState::due});
}

TEST_CASE("an error while fetching counts as an attempt at the batch, and does not undo its claim") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 4);
  const auto session = attach(database);
  const auto first = session->claim({.limit = 2});
  REQUIRE(first.lease);
  const auto counts = fetch_due(*session, *first.lease).counts;
  connection->run(
      "CREATE OR REPLACE FUNCTION mailroom_token_state(p_action token_action, p_consumed_at bigint, "
      "p_expires_at "
      "bigint, p_status account_status, p_now bigint) RETURNS text LANGUAGE plpgsql IMMUTABLE AS "
      "$$ BEGIN RAISE EXCEPTION 'broken'; END $$");
  auto reply = session->claim({.limit = 2, .receipt = claim::Receipt{*first.lease, counts}});
  REQUIRE(reply.lease);
  CHECK_FALSE(reply.receipt_void);
  CHECK_THROWS_AS(fetch_ids(*session, *reply.lease), db::DatabaseError);
  reply = session->claim({.limit = 2});
  REQUIRE(reply.lease);
  CHECK(reply.lease->attempt == 2);
  CHECK_THROWS_AS(fetch_ids(*session, *reply.lease), db::DatabaseError);
}

}  // namespace mailroom::test::fetch_test
