// Which batches a pruning removes, and how it works: in steps, past rows that another session has locked,
// stopped, aborted, recorded.

#include "support/catch.hpp"
#include "support/prune_rig.hpp"

using namespace mailroom;
using namespace mailroom::test;

TEST_CASE("a batch is removed when it is closed, old, without tokens, and not the newest of its queue") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("INSERT INTO jobs (job_type, last_seq) VALUES ('second', 0)");
  const auto session = attach(database);
  insert_accounts(*connection, 6);
  drain(*session, 2);                      // 1, 2 and 3 hold two tokens each
  drain(*attach(database, "second"), 10);  // 4 is the one batch of its queue
  REQUIRE(batches(*connection) == Ids{1, 2, 3, 4});
  insert_accounts(*connection, 1, "dead");
  REQUIRE(session->claim({.limit = 10, .partial = true}).lease);  // 5
  connection->run("UPDATE mailroom_batches SET dead_at = now() WHERE id = 5");
  insert_accounts(*connection, 1, "leased");
  REQUIRE(session->claim({.limit = 10, .partial = true}).lease);  // 6 stays open
  drain(*attach(database, "second"), 10);                         // 7
  insert_accounts(*connection, 1, "newest");
  drain(*attach(database), 10);  // 8
  REQUIRE(batches(*connection) == Ids{1, 2, 3, 4, 5, 6, 7, 8});

  CHECK(prune(database).empty());
  age_batches(*connection);
  // All of their tokens still exist.
  CHECK(prune(database).batches == 0);
  expire(*connection, "id <> 4 AND id < 9");
  const auto dry = count(database);
  const auto done = prune(database);
  // Batches 2 and 4 hold token 4; batch 6 is open; batch 7 holds the token of batch 6; batch 8 is the newest.
  CHECK(tokens(*connection) == Ids{4, 8, 9});
  CHECK(batches(*connection) == Ids{2, 4, 6, 7, 8});
  CHECK(done.batches == 3);
  CHECK(dry.tokens == done.tokens);
  CHECK(dry.batches == done.batches);

  expire(*connection, "id = 4");
  CHECK(prune(database).batches == 2);
  CHECK(batches(*connection) == Ids{6, 7, 8});
}

TEST_CASE("the newest batch of each queue is kept, and its readers still work") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5);
  drain(*attach(database), 1);
  expire(*connection, "true");
  age_batches(*connection);
  const auto done = prune(database);
  CHECK(done.tokens == 5);
  CHECK(done.batches == 4);
  CHECK(batches(*connection) == Ids{5});
  insert_accounts(*connection, 2, "after");
  const auto session = attach(database);
  const auto reply = session->claim({.limit = 10, .partial = true});
  REQUIRE(reply.lease);
  CHECK(fetch_ids(*session, *reply.lease) == Ids{6, 7});
}

TEST_CASE("rows that another session has locked are skipped, and not waited for") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 4);
  drain(*attach(database), 1);
  expire(*connection, "true");
  age_batches(*connection);
  const auto other = database.connect();
  other->run("BEGIN");
  other->run("UPDATE tokens SET expires_at = extract(epoch FROM now()) + 900 WHERE id = 2");
  other->run("SELECT FROM mailroom_batches WHERE id = 3 FOR UPDATE");

  const auto done = prune(database);
  CHECK(done.tokens == 3);
  // The batch of token 2 stays with it, and is not counted as removable.
  CHECK(done.batches == 1);
  CHECK(done.skipped == 2);
  CHECK(tokens(*connection) == Ids{2});
  CHECK(batches(*connection) == Ids{2, 3, 4});
  other->run("COMMIT");
  const auto again = prune(database);
  CHECK(again.tokens == 0);
  CHECK(again.batches == 1);
  CHECK(tokens(*connection) == Ids{2});
}

TEST_CASE("every step size removes the same rows, in steps of at most that size") {
  const int step = GENERATE(1, 2, 3, 7, 1000);
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 40);
  drain(*attach(database), 2);
  expire(*connection, "id % 3 > 0");
  age_batches(*connection);
  std::int64_t last = 0;
  bool small = true;
  bool forward = true;
  double fraction = 0;
  const auto done = prune(database, step, [&](const PruneProgress& progress) {
    small = small && progress.tokens + progress.batches - last <= step;
    forward = forward && progress.fraction >= fraction && progress.fraction <= 1;
    last = progress.tokens + progress.batches;
    fraction = progress.fraction;
    return true;
  });
  CAPTURE(step);
  CHECK(done.tokens == 27);
  // Three consecutive batches have the tokens 3n to 3n + 5; one of the three holds no multiple of three.
  CHECK(done.batches == 7);
  CHECK(small);
  CHECK(forward);
  CHECK(fraction == 1);
  CHECK_FALSE(done.stopped);
}

TEST_CASE("a pruning that is stopped keeps what it has done, and records it") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 10);
  drain(*attach(database));
  expire(*connection, "true");
  int steps = 0;
  const auto done = prune(database, 3, [&](const PruneProgress&) { return ++steps < 2; });
  CHECK(done.stopped);
  CHECK(done.tokens == 6);
  CHECK(tokens(*connection) == Ids{7, 8, 9, 10});
  CHECK(
      value<std::string>(*connection,
                         "SELECT kind || ' ' || actor || ' ' || reason || ' ' || coalesce(queue, '-') || ' ' "
                         "|| (details - 'before')::text FROM mailroom_operations") ==
      R"(prune ann@host housekeeping - {"tokens": 6, "batches": 0, "skipped": 0, "stopped": true, "deliveries": 0, )"
      R"("older_than": "30d"})");
  const auto rest = prune(database, 3);
  CHECK(rest.tokens == 4);
  CHECK_FALSE(rest.stopped);
  CHECK(operations(*connection) == 2);
}

TEST_CASE("a pruning that fails records what it has done") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 6);
  drain(*attach(database));
  expire(*connection, "true");
  connection->run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$");
  connection->run(
      "CREATE TRIGGER refuse BEFORE DELETE ON tokens FOR EACH ROW WHEN (OLD.id = 5) EXECUTE FUNCTION "
      "refuse()");
  CHECK_THROWS_AS(prune(database, 2), DatabaseError);
  CHECK(tokens(*connection) == Ids{5, 6});
  CHECK(value<int>(*connection, "SELECT (details->>'tokens')::int FROM mailroom_operations") == 4);
}

TEST_CASE("a dry run and a run with nothing to do leave no trace") {
  TestDatabase database;
  const auto connection = database.connect();
  CHECK(prune(database).empty());
  insert_accounts(*connection, 3);
  drain(*attach(database));
  CHECK(prune(database).empty());
  expire(*connection, "true");
  const auto writer = database.connect();
  writer->run("SET default_transaction_read_only = on");
  Pruner pruner(*writer, month, 1000);
  CHECK(pruner.count(always).tokens == 3);
  CHECK(tokens(*connection).size() == 3);
  CHECK(operations(*connection) == 0);
}

TEST_CASE("without a queue there is no cursor to wait for") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  expire(*connection, "id < 3");
  connection->run("DELETE FROM jobs");
  const auto done = prune(database);
  CHECK(done.tokens == 2);
  CHECK_FALSE(done.held_back);
}
