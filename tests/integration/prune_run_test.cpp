// Which batches a pruning removes, and how it works: in steps, past rows that another session has locked,
// stopped, aborted, recorded.

#include <thread>

#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/prune_rig.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::prune_run_test {

TEST_CASE("a pruning that removed much says that the files stay as large") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto pruned = [&](int accounts, const std::string& name) {
    insert_accounts(*connection, accounts, name);
    connection->run(
        "UPDATE tokens SET created_at = 1, expires_at = 2; UPDATE jobs SET last_seq = (SELECT max(id) FROM tokens)");
    const auto run =
        run_to_end({mailroom_binary, "prune", "--yes"}, {{"MAILROOM_DATABASE_URL", database.conninfo()}});
    CHECK(run.status == 0);
    return run.output;
  };
  CHECK(pruned(10, "few").find("VACUUM FULL") == std::string::npos);
  CHECK(pruned(20'000, "many").find("VACUUM FULL public.tokens") != std::string::npos);
}

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

TEST_CASE("a claim waits for no step of a pruning") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5);
  const auto session = attach(database);
  drain(*session);
  expire(*connection, "true");
  insert_accounts(*connection, 3, "new");
  // Each step stops at its first token, with the rows before it locked and deleted, until this session lets
  // it go on.
  connection->run(
      "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN PERFORM pg_advisory_xact_lock(77); RETURN OLD; END $$");
  connection->run(
      "CREATE TRIGGER stop BEFORE DELETE ON tokens FOR EACH ROW WHEN (OLD.id = 5) EXECUTE FUNCTION stop()");
  connection->run("SELECT pg_advisory_lock(77)");
  prune::PruneSummary done;
  std::thread pruning([&] { done = prune(database); });
  const auto has_stopped = [&] {
    return locks(*connection, "locktype = 'advisory' AND objid = 77 AND NOT granted") == 1;
  };
  const bool is_stopped = eventually(has_stopped);
  const auto reply = session->claim({.limit = 10, .partial = true});
  const bool is_still_stopped = has_stopped();
  std::string emitted;
  if (reply.lease) {
    for (const auto id : fetch_ids(*session, *reply.lease))
      emitted += std::to_string(id) + " ";
    const claim::Receipt receipt{*reply.lease, {.emitted = 3}};
    CHECK_FALSE(session->claim({.limit = 10, .partial = true, .receipt = receipt}).receipt_void);
  }
  connection->run("SELECT pg_advisory_unlock(77)");
  pruning.join();
  CHECK(is_stopped);
  CHECK(is_still_stopped);
  CHECK(emitted == "6 7 8 ");
  CHECK(done.tokens == 5);
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
  const auto done = prune(database, step, [&](const prune::PruneProgress& progress) {
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
  const auto done = prune(database, 3, [&](const prune::PruneProgress&) { return ++steps < 2; });
  CHECK(done.stopped);
  CHECK(done.tokens == 6);
  CHECK(tokens(*connection) == Ids{7, 8, 9, 10});
  CHECK(
      value<std::string>(*connection,
                         "SELECT kind || ' ' || actor || ' ' || reason || ' ' || coalesce(queue, '-') || ' ' "
                         "|| (details - 'before')::text FROM mailroom_operations") ==
      R"(prune ann@host housekeeping - {"tokens": 6, "batches": 0, "bounces": 0, "skipped": 0, "stopped": true, "contents": 0, "messages": 0, "referred": 0, "deliveries": 0, )"
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
  CHECK_THROWS_AS(prune(database, 2), db::DatabaseError);
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
  prune::Pruner pruner(*writer, {.records = month, .contents = contents}, 1000);
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

namespace {

/// Tokens $1 to $2 and their batches of a hundred, all created `days` days ago and expired since.
void insert_ended(db::Connection& connection, std::int64_t first, std::int64_t last, int days) {
  connection.transact([&](pqxx::work& transaction) {
    db::Connection::execute(transaction, "SET LOCAL session_replication_role = replica");
    db::Connection::execute(
        transaction,
        "INSERT INTO tokens (id, account, action, code, created_at, expires_at) "
        "SELECT g, 1, 'activation', '00000', c.at, c.at + 60 FROM generate_series($1::bigint, $2::bigint) g, "
        "LATERAL (SELECT extract(epoch FROM now())::bigint - 86400 * $3::bigint AS at) c",
        first, last, days);
    db::Connection::execute(transaction,
                            "INSERT INTO mailroom_deliveries (queue, token, state, batch, last_at) "
                            "SELECT 'mailroom', g, 'accepted', 1, now() - $3::int * interval '1 day' "
                            "FROM generate_series($1::bigint, $2::bigint) g",
                            first, last, days);
    db::Connection::execute(
        transaction,
        "INSERT INTO mailroom_batches (queue, ids, collector, claimed_at, emitted_at, emitted, cursor, open_from, gap_ids) "
        "SELECT 'mailroom', int8multirange(int8range(g, g + 1)), 1, c.at, c.at, 1, g, 1, '{}' "
        "FROM generate_series($1::bigint, $2::bigint) g, LATERAL (SELECT now() - $3::int * interval '1 day' AS at) c "
        "ORDER BY g",
        first, last, days);
  });
}

}  // namespace

TEST_CASE("a pruning reads what came within the time that it keeps once, however much that is") {
  // A statement reads 20,000 rows.
  const std::int64_t recent = GENERATE(45'000, 100'000);
  TestDatabase database;
  const auto connection = database.connect();
  insert_ended(*connection, 1, 10, 40);
  insert_ended(*connection, 11, 10 + recent, 20);
  insert_ended(*connection, 11 + recent, 20 + recent, 40);
  int steps = 0;
  const auto count_steps = [&](const prune::PruneProgress&) { return ++steps > 0; };
  const auto planned = count(database);
  const auto done = prune(database, 1000, count_steps);
  // Of each table the first statement reads ten old rows too, the second one only rows that came lately.
  CHECK(steps == 3 * 2);
  CHECK(done.tokens == 10);
  CHECK(done.batches == 10);
  CHECK(done.deliveries == 10);
  CHECK(planned.tokens == 10);
  CHECK(planned.batches == 10);
  CHECK(planned.deliveries == 10);

  // The old rows behind the others are removed with them at the latest.
  connection->run(
      "UPDATE tokens SET created_at = created_at - 15 * 86400, expires_at = expires_at + 15 * 86400 "
      "WHERE id BETWEEN 11 AND 10 + $1",
      recent);
  connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '15 days' WHERE id > 10");
  connection->run(
      "UPDATE mailroom_deliveries SET last_at = last_at - interval '15 days' WHERE token BETWEEN 11 AND 10 + $1",
      recent);
  const auto rest = prune(database);
  CHECK(rest.tokens == 10);
  CHECK(rest.batches == 9);  // the newest one is the state of the queue
  CHECK(rest.deliveries == 10);
}

}  // namespace mailroom::test::prune_run_test
