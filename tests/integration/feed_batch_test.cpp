// The feed's events of batches and operations: rows that change after they were read, and their actors.

#include "base/pattern.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_feed.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::feed_batch_test {
namespace {

/// Claims a batch and reads its rows.
claim::Receipt claim_batch(claim::PgQueueSession& session) {
  const auto reply = session.claim({.limit = 10, .partial = true});
  REQUIRE(reply.lease);
  claim::Receipt receipt{*reply.lease, {}};
  receipt.counts.emitted = static_cast<int>(fetch_ids(session, *reply.lease).size());
  return receipt;
}

void acknowledge(claim::PgQueueSession& session, const claim::Receipt& receipt) {
  session.claim({.limit = 0, .receipt = receipt});
}

}  // namespace

TEST_CASE("a batch is shown when it is acknowledged, taken over, skipped or dead-lettered") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  insert_accounts(*connection, 2);
  auto first = attach(database);
  const auto lost = claim_batch(*first);
  CHECK(feed.poll() == Shown{"created 1", "created 2"});
  first.reset();

  const auto second = attach(database);
  claim::Receipt receipt;
  // The server ends a session a moment after its client has.
  REQUIRE(eventually([&] {
    const auto reply = second->claim({.limit = 10, .partial = true, .take_over = true});
    if (reply.lease) receipt.lease = *reply.lease;
    return reply.lease.has_value();
  }));
  CHECK(receipt.lease.batch == lost.lease.batch);
  CHECK(feed.poll() == Shown{"taken-over 1"});
  receipt.counts.emitted = 2;
  acknowledge(*second, receipt);
  CHECK(feed.poll() == Shown{"emitted 1"});

  insert_accounts(*connection, 1, "gone");
  connection->run("UPDATE tokens SET expires_at = 0 WHERE id = 3");
  second->claim({.limit = 10, .partial = true});
  CHECK(feed.poll() == Shown{"created 3", "skipped 2"});

  insert_accounts(*connection, 1, "stuck");
  claim_batch(*second);
  connection->run("UPDATE mailroom_batches SET attempts = 20 WHERE id = 3");
  second->claim({.limit = 10, .partial = true});
  CHECK(feed.poll() == Shown{"created 4", "taken-over 3", "dead 3"});
}

TEST_CASE("a batch that was open at the start is shown when it is acknowledged") {
  TestDatabase database;
  insert_accounts(*database.connect(), 1);
  const auto session = attach(database);
  const auto receipt = claim_batch(*session);
  TestFeed feed(database, TestFeed::everything());
  CHECK(feed.take().size() == 1);
  acknowledge(*session, receipt);
  CHECK(feed.poll() == Shown{"emitted 1"});
}

TEST_CASE("suspensions by anyone, rewinds, replays and prunings are shown, with actor and reason") {
  TestDatabase database;
  const auto connection = database.connect("application");
  insert_accounts(*connection, 2);
  TestFeed feed(database);
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 2");
  connection->run("UPDATE accounts SET status = 'active' WHERE id = 2");
  connection->run(
      "DO $$ BEGIN SET LOCAL mailroom.actor = 'alice'; SET LOCAL mailroom.reason = 'spam'; "
      "UPDATE accounts SET status = 'suspended' WHERE id = 1; END $$");
  connection->run("SELECT mailroom_rewind('mailroom', 0, 1000, '{}')");
  const auto session = attach(database);
  acknowledge(*session, claim_batch(*session));
  connection->run("SELECT mailroom_replay('mailroom', '{2}', '{}')");
  connection->run("INSERT INTO mailroom_operations (kind, actor) VALUES ('prune', 'cron')");
  feed.feed().poll();
  Shown shown;
  for (const auto& event : feed.take()) {
    // Without the user and the host that follow the program.
    const auto actor = Pattern(" [^ ]+@.*").replaced(event.actor(), "");
    const auto reason = event.operation() != nullptr ? event.operation()->reason : "";
    shown.push_back(short_text(event) + " by " + actor + (reason.empty() ? "" : ": " + reason));
  }
  CHECK(shown == Shown{"suspended 2 by application", "restored 2 by application",
                       "suspended 1 by alice: spam", "rewound mailroom by application",
                       "emitted 2 by mailroom collect", "replayed mailroom by application",
                       "pruned  by cron"});
}

TEST_CASE("every kind of operation that the schema allows is an event") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  const auto kinds = connection->run(
      "SELECT m[1] FROM pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''(\\w+)''', 'g') m "
      "WHERE conrelid = 'mailroom_operations'::regclass AND contype = 'c'");
  CHECK(kinds.size() >= 5);
  for (const auto& row : kinds) {
    const std::string kind = row[0].c_str();
    INFO(kind);
    connection->run("INSERT INTO mailroom_operations (kind, actor) VALUES ($1, 'test')", kind);
    CHECK(feed.poll() == Shown{std::string(feed::kind_text(feed::find_kind(kind))) + " "});
  }
}

TEST_CASE("a batch with an infinite time is an event") {
  TestDatabase database;
  insert_accounts(*database.connect(), 1);
  const auto session = attach(database);
  acknowledge(*session, claim_batch(*session));
  database.connect()->run("UPDATE mailroom_batches SET emitted_at = 'infinity'");
  const auto events = TestFeed(database, TestFeed::everything()).take();
  REQUIRE(events.size() == 2);
  CHECK(short_text(events[1]) == "emitted 1");
}

}  // namespace mailroom::test::feed_batch_test
