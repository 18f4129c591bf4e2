// Which tokens a pruning removes and which it keeps: by age, cursors, open batches and gaps.

#include "support/catch.hpp"
#include "support/prune_rig.hpp"
#include "support/several_queues.hpp"

namespace mailroom::test::prune_test {

TEST_CASE("a token is removed when it has ended before the limit, and is kept otherwise") {
  struct Case {
    std::string meaning, change;
    bool goes;
  };
  // The columns of a token and of its account, in seconds from now.
  const std::vector<Case> cases{
      {"due", "expires_at = now + 900", false},
      {"due, made a year ago, to expire in a hundred",
       "created_at = now - 31536000, expires_at = now + 3153600000", false},
      {"expired lately", "expires_at = now - 60", false},
      {"expired a day short of the limit", "expires_at = now - 29 * 86400", false},
      {"expired a day before the limit", "expires_at = now - 31 * 86400", true},
      {"expired at the beginning of time", "expires_at = 0", true},
      {"consumed lately, expired long ago", "expires_at = now - 86400 * 31, consumed_at = now - 60", false},
      {"consumed long ago", "expires_at = now - 86400 * 40, consumed_at = now - 86400 * 31", true},
      {"consumed long ago, to expire in a year",
       "expires_at = now + 31536000, consumed_at = now - 86400 * 31", true},
  };
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, static_cast<int>(cases.size()) + 2);
  drain(*attach(database));
  Ids expected;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto id = static_cast<std::int64_t>(i + 1);
    connection->run("UPDATE tokens SET " + cases[i].change +
                        " FROM (SELECT extract(epoch FROM now())::bigint AS now) clock WHERE id = $1",
                    id);
    if (!cases[i].goes) expected.push_back(id);
  }
  // The account's later status changes nothing: the last two accounts are suspended, one of them with a token
  // that would be due after a restore.
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id > $1", cases.size());
  expire(*connection, "id = " + std::to_string(cases.size() + 1));
  expected.push_back(static_cast<std::int64_t>(cases.size()) + 2);

  const auto dry = count(database);
  CHECK(tokens(*connection).size() == cases.size() + 2);
  const auto done = prune(database);
  CHECK(tokens(*connection) == expected);
  CHECK(done.tokens == static_cast<std::int64_t>(cases.size() + 2 - expected.size()));
  CHECK(dry.tokens == done.tokens);
  CHECK(done.skipped == 0);
  CHECK(value<std::int64_t>(*connection, "SELECT count(*) FROM accounts") ==
        static_cast<std::int64_t>(cases.size()) + 2);
}

TEST_CASE("a token stays until the cursor of every queue has passed it") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 6);
  expire(*connection, "true");
  CHECK(prune(database).tokens == 0);
  auto held = count(database).held_back;
  REQUIRE(held);
  CHECK(held->queue == "mailroom");
  CHECK(held->cursor == 0);

  connection->run("INSERT INTO jobs (job_type, last_seq) VALUES ('second', 4)");
  drain(*attach(database));
  held = count(database).held_back;
  REQUIRE(held);
  CHECK(held->queue == "second");
  CHECK(held->cursor == 4);
  CHECK(prune(database).tokens == 4);
  CHECK(tokens(*connection) == Ids{5, 6});

  drain(*attach(database, "second"));
  const auto done = prune(database);
  CHECK(done.tokens == 2);
  CHECK_FALSE(done.held_back);
  CHECK(tokens(*connection).empty());
}

TEST_CASE("a rewind during a pruning keeps the tokens above the new cursor") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 8);
  drain(*attach(database));
  expire(*connection, "true");
  int steps = 0;
  const auto done = prune(database, 2, [&](const prune::PruneProgress&) {
    if (++steps == 1) connection->run("SELECT FROM mailroom_rewind('mailroom', 4, 100, '{}')");
    return true;
  });
  CHECK(done.tokens == 4);
  CHECK(tokens(*connection) == Ids{5, 6, 7, 8});
}

TEST_CASE("a token in an open batch stays until the batch is closed") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto session = attach(database);
  insert_accounts(*connection, 4);
  const auto first = session->claim({.limit = 2, .partial = true});
  REQUIRE(first.lease);
  expire(*connection, "id <= 2");
  CHECK(prune(database).tokens == 0);
  const claim::Receipt receipt{*first.lease, {.emitted = 2}};
  CHECK_FALSE(session->claim({.limit = 2, .partial = true, .receipt = receipt}).receipt_void);
  expire(*connection, "true");
  CHECK(prune(database).tokens == 2);
  CHECK(tokens(*connection) == Ids{3, 4});
}

TEST_CASE("a token in a gap stays until a collector has read it") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto open = begin_insert(database, 2, "late");
  insert_accounts(*connection, 2);
  const auto session = attach(database);
  drain(*session);
  open->run("COMMIT");
  expire(*connection, "true");
  CHECK(prune(database).tokens == 2);
  CHECK(tokens(*connection) == Ids{1, 2});
  drain(*session);
  CHECK(prune(database).tokens == 2);
}

TEST_CASE("a token that is to be replayed stays until it has been emitted") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto session = attach(database);
  insert_accounts(*connection, 5);
  drain(*session);
  CHECK(value<std::int64_t>(*connection, "SELECT mailroom_replay('mailroom', '{2,4}', '{}')") == 2);
  expire(*connection, "true");
  CHECK(prune(database).tokens == 3);
  CHECK(tokens(*connection) == Ids{2, 4});
  drain(*session);
  CHECK(prune(database).tokens == 2);
}

TEST_CASE("gaps of an obsolete queue state keep no token") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  drain(*attach(database));
  connection->run("INSERT INTO mailroom_gaps (ids, horizon) VALUES ('{[1,4)}', '0')");
  expire(*connection, "true");
  CHECK(prune(database).tokens == 3);
}

TEST_CASE("the record of a mail goes with its token, unless the mail is old and waits for another attempt") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 6);
  drain(*attach(database));
  connection->run(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch, last_at, not_before) "
      "SELECT 'mailroom', t, CASE WHEN t = 5 THEN 'deferred' ELSE 'accepted' END, 1, "
      "now() - (CASE WHEN t = 4 THEN 1 ELSE 40 END) * interval '1 day', CASE WHEN t = 5 THEN now() END "
      "FROM generate_series(1, 6) t");
  // 1: old. 2: its token is kept. 3: its token was deleted by somebody else. 4: recent. 5: waits. 6: its
  // token is kept.
  expire(*connection, "id IN (1, 4, 5)");
  connection->run("DELETE FROM tokens WHERE id = 3");
  const auto left = [&] {
    return value<std::string>(*connection,
                              "SELECT string_agg(token::text, ' ' ORDER BY token) FROM mailroom_deliveries");
  };
  CHECK(count(database).deliveries == 2);
  CHECK(left() == "1 2 3 4 5 6");
  CHECK(prune(database).deliveries == 2);
  CHECK(left() == "2 4 5 6");
  CHECK(prune(database).deliveries == 0);
}

TEST_CASE("the records of a dropped queue are removed entirely, and its cursor holds nothing back") {
  TestDatabase database;
  const auto connection = database.connect();
  make_queue(*connection, "recovery", recoveries_only);
  make_queue(*connection, "behind", "{}");
  insert_accounts(*connection, 4);
  connection->run("UPDATE accounts SET status = 'active' WHERE id > 2");
  connection->run(
      "INSERT INTO tokens (account, action) SELECT id, 'password_recovery' FROM accounts WHERE id > 2");
  drain(*attach(database));
  drain(*attach(database, "recovery"));
  // Left open by its drop: a dead letter.
  const auto session = attach(database, "behind");
  REQUIRE(session->claim({.limit = 1}).lease);
  connection->run(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch, last_at) "
      "SELECT 'recovery', id, 'accepted', 1, now() - interval '31 days' FROM tokens WHERE id > 4");
  expire(*connection, "true");
  CHECK(prune(database).held_back->queue == "behind");
  drop_queue(*connection, "behind");
  drop_queue(*connection, "recovery");
  age_batches(*connection);

  const auto planned = count(database);
  CHECK_FALSE(planned.held_back);
  const auto summary = prune(database);
  CHECK(summary.deliveries == 2);
  CHECK(planned.batches == summary.batches);
  CHECK(tokens(*connection).empty());
  // The newest row of the queue that is left is its state.
  CHECK(value<std::string>(*connection, "SELECT string_agg(queue, ',') FROM mailroom_batches") == "mailroom");
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_deliveries") == 0);
}

TEST_CASE("a queue that was created again keeps its state") {
  TestDatabase database;
  const auto connection = database.connect();
  make_queue(*connection, "recovery", recoveries_only);
  insert_accounts(*connection, 2);
  drain(*attach(database, "recovery"));
  drop_queue(*connection, "recovery");
  make_queue(*connection, "recovery", recoveries_only, 2);
  drain(*attach(database));
  expire(*connection, "true");
  age_batches(*connection);
  prune(database);
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_batches WHERE queue = 'recovery'") == 1);
  CHECK(value<int>(*connection, "SELECT s.cursor FROM mailroom_queue_state('recovery') s") == 2);
}

}  // namespace mailroom::test::prune_test
