// What the feed tells of batches and operations: rows that change after they were seen, and who did what.

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_feed.hpp"
#include "support/test_queue.hpp"

using namespace mailroom;
using namespace mailroom::test;

namespace {

/// Claims a batch and reads its rows.
Receipt claim_batch(PgQueueSession& session) {
  const auto reply = session.claim({.limit = 10, .partial = true});
  REQUIRE(reply.lease);
  Receipt receipt{*reply.lease, {}};
  receipt.counts.emitted = static_cast<int>(fetch_ids(session, *reply.lease).size());
  return receipt;
}

void acknowledge(PgQueueSession& session, const Receipt& receipt) {
  session.claim({.limit = 0, .receipt = receipt});
}

}  // namespace

TEST_CASE("a batch is told of when it is acknowledged, taken over, passed over or set aside") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  insert_accounts(*connection, 2);
  auto first = attach(database);
  const auto lost = claim_batch(*first);
  CHECK(feed.poll() == Told{"created 1", "created 2"});
  first.reset();

  const auto second = attach(database);
  Receipt receipt;
  // The server ends a session a moment after its client has.
  REQUIRE(eventually([&] {
    const auto reply = second->claim({.limit = 10, .partial = true, .take_over = true});
    if (reply.lease) receipt.lease = *reply.lease;
    return reply.lease.has_value();
  }));
  CHECK(receipt.lease.batch == lost.lease.batch);
  CHECK(feed.poll() == Told{"taken-over 1"});
  receipt.counts.emitted = 2;
  acknowledge(*second, receipt);
  CHECK(feed.poll() == Told{"emitted 1"});

  insert_accounts(*connection, 1, "gone");
  connection->run("UPDATE tokens SET expires_at = 0 WHERE id = 3");
  second->claim({.limit = 10, .partial = true});
  CHECK(feed.poll() == Told{"created 3", "passed-over 2"});

  insert_accounts(*connection, 1, "stuck");
  claim_batch(*second);
  connection->run("UPDATE mailroom_batches SET attempts = 20 WHERE id = 3");
  second->claim({.limit = 10, .partial = true});
  CHECK(feed.poll() == Told{"created 4", "taken-over 3", "set-aside 3"});
}

TEST_CASE("a batch that was open at the start is told of when it is acknowledged") {
  TestDatabase database;
  insert_accounts(*database.connect(), 1);
  const auto session = attach(database);
  const auto receipt = claim_batch(*session);
  TestFeed feed(database, TestFeed::everything());
  CHECK(feed.take().size() == 1);
  acknowledge(*session, receipt);
  CHECK(feed.poll() == Told{"emitted 1"});
}

TEST_CASE("suspensions by anybody, rewinds, replays and prunings are told, with who and why") {
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
  for (int i = 0; i < 2; ++i)
    feed.feed().poll(feed.session());
  Told told;
  for (const auto& event : feed.take())
    told.push_back(short_text(event) + " by " + event.by.substr(0, event.by.find('@')) +
                   (event.reason.empty() ? "" : ": " + event.reason));
  CHECK(told == Told{"suspended 2 by application", "restored 2 by application", "suspended 1 by alice: spam",
                     "rewound mailroom by application", "emitted 2 by mailroom collect",
                     "replayed mailroom by application", "pruned  by cron"});
}

TEST_CASE("every kind of operation that the schema allows has a word") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto kinds = connection->run(
      "SELECT m[1] FROM pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''(\\w+)''', 'g') m "
      "WHERE conrelid = 'mailroom_operations'::regclass AND contype = 'c'");
  CHECK(kinds.size() >= 5);
  for (const auto& row : kinds) {
    INFO(row[0].c_str());
    CHECK(word_of_operation(row[0].c_str()));
  }
}
