// Faults of other transactions: late, long, foreign, two-phase.

#include <algorithm>
#include <fmt/format.h>
#include <future>

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

using Microseconds = std::chrono::microseconds;

/// Transactions commit long after they drew their ids, in another order; one of them has many rows.
Outcome late_commits(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 3, .limit = 25});
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    std::vector<std::unique_ptr<db::Connection>> late;
    for (const int rows : {1, 3, 40, plan.shortened ? 400 : 3000, 1}) {
      late.push_back(trial.connect());
      late.back()->run("BEGIN");
      insert_accounts(*late.back(), rows, fmt::format("late{}-{}-", round, late.size()));
    }
    trial.pause(1500, 2500);
    trial.expect(value<int>(*connection, "SELECT count(*) FROM mailroom_gaps") > 0,
                 "the cursor has passed their ids");
    std::shuffle(late.begin(), late.end(), trial.random());
    for (auto& transaction : late) {
      transaction->run("COMMIT");
      trial.pause(0, 100);
    }
  }
  return trial.finish(plan.rounds);
}

/// Waits until a claim has taken all tokens that can be seen.
void await_cursor(Trial& trial, db::Connection& connection) {
  const auto is_passed = [&] {
    return value<bool>(
        connection,
        "SELECT (SELECT cursor FROM mailroom_queue_state('mailroom')) >= (SELECT max(id) FROM tokens)");
  };
  trial.expect(eventually(is_passed), "the cursor passes the ids");
}

/// Only after a batch without gaps is the next claim the usual one.
void end_gaps(Trial& trial, db::Connection& connection, int round) {
  const auto is_calm = [&] {
    return value<bool>(connection, "SELECT gap_ids = '{}' FROM mailroom_batches ORDER BY id DESC LIMIT 1");
  };
  int inserted = 0;
  const auto ends = [&] {
    insert_accounts(connection, 1, fmt::format("calm{}-{}-", round, ++inserted));
    await_cursor(trial, connection);
    return is_calm();
  };
  trial.expect(eventually(ends), "the gaps end");
}

/// The transaction with the lower transaction id draws the higher token id and commits first.
void draw_in_another_order(Trial& trial, db::Connection& older, db::Connection& younger, int round) {
  older.run("BEGIN");
  older.run("SELECT pg_current_xact_id()");
  younger.run("BEGIN");
  insert_accounts(younger, 1, fmt::format("younger{}-", round));
  insert_accounts(older, 1, fmt::format("older{}-", round));
  older.run("COMMIT");
  await_cursor(trial, older);
  younger.run("COMMIT");
}

/// While a claim waits for the queue's lock, a transaction draws an id and others commit enough newer ids to
/// fill the batch.
void draw_while_a_claim_waits(Trial& trial, db::Connection& locker, db::Connection& held, int round) {
  locker.run("SELECT pg_advisory_lock(mailroom_lock_class('queue'), hashtext('mailroom'))");
  insert_accounts(locker, 1, fmt::format("wakes{}-", round));
  const auto waits = [&] {
    return !locker
                .run(
                    "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = "
                    "mailroom_lock_class('queue')::oid")
                .empty();
  };
  trial.expect(eventually(waits), "a claim waits for the queue's lock");
  held.run("BEGIN");
  insert_accounts(held, 1, fmt::format("held{}-", round));
  insert_accounts(locker, trial.limit(), fmt::format("overtakes{}-", round));
  locker.run("SELECT pg_advisory_unlock(mailroom_lock_class('queue'), hashtext('mailroom'))");
  await_cursor(trial, locker);
  held.run("COMMIT");
}

/// A transaction draws an id first, and inserts its row when the cursor is at a later id.
void pause_after_drawing(Trial& trial, db::Connection& slow, db::Connection& other, int account, int round) {
  slow.run("SET harness.pause = 'on'");
  other.run("SELECT pg_advisory_lock(77)");
  auto inserted = std::async(std::launch::async, [&] {
    slow.run("INSERT INTO tokens (account, action) VALUES ($1, 'activation')", account);
  });
  const auto waits = [&] {
    return !other.run("SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND NOT granted")
                .empty();
  };
  trial.expect(eventually(waits), "a transaction pauses after it has drawn an id");
  insert_accounts(other, 1, fmt::format("passes{}-", round));
  await_cursor(trial, other);
  other.run("SELECT pg_advisory_unlock(77)");
  inserted.get();
  slow.run("RESET harness.pause");
}

constexpr auto pausing_trigger =
    "CREATE FUNCTION pause_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF current_setting('harness.pause', true) = 'on' THEN PERFORM pg_advisory_xact_lock(77); END IF; "
    "RETURN NEW; END $$; "
    "CREATE TRIGGER pause_insert BEFORE INSERT ON tokens FOR EACH ROW EXECUTE FUNCTION pause_insert()";

/// Cases in which a horizon that is too low would always lose a token.
Outcome ids_in_another_order(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 1, .writers = 0, .slow_triggers = false});
  const auto one = trial.connect();
  const auto other = trial.connect();
  one->run(pausing_trigger);
  insert_accounts(*one, 1, "paused");
  const auto account = value<int>(*one, "SELECT id FROM accounts WHERE login = 'paused1'");
  for (int round = 0; round < plan.rounds; ++round) {
    // In the other rounds, beside the gaps of the last one.
    if (round % 2 == 0) end_gaps(trial, *one, round);
    draw_in_another_order(trial, *one, *other, round);
    draw_while_a_claim_waits(trial, *one, *other, round);
    pause_after_drawing(trial, *one, *other, account, round);
  }
  return trial.finish(plan.rounds);
}

/// A write transaction in another database of the cluster only delays the deletion of gaps.
Outcome foreign_transaction(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 2});
  db::Connection foreign(cluster.conninfo("postgres"), "foreign");
  foreign.run("BEGIN");
  foreign.run("SELECT pg_current_xact_id()");
  for (int round = 0; round < plan.rounds; ++round) {
    trial.pause(1000, 1000);
    trial.expect(trial.crew().writes_again(), "delivery continues beside the transaction");
  }
  trial.stop_writers();
  const auto connection = trial.connect();
  const auto delivered = [&] {
    return value<bool>(
        *connection,
        "SELECT (SELECT cursor FROM mailroom_queue_state('mailroom')) >= (SELECT max(id) FROM tokens) "
        "AND NOT EXISTS (SELECT FROM mailroom_batches WHERE emitted_at IS NULL)");
  };
  trial.expect(eventually(delivered), "all is emitted before the transaction ends");
  foreign.run("ROLLBACK");
  return trial.finish(plan.rounds);
}

/// The time from the commit of a token to its line, of the fastest in ten: slower ones also wait for what
/// else the machine does.
Microseconds latency(Trial& trial, db::Connection& connection, const std::string& prefix) {
  std::vector<Microseconds> all;
  for (int i = 0; i < 60; ++i) {
    const auto before = trial.crew().bytes();
    insert_accounts(connection, 1, fmt::format("{}{}-", prefix, i));
    const auto start = std::chrono::steady_clock::now();
    while (trial.crew().bytes() == before &&
           std::chrono::steady_clock::now() - start < std::chrono::seconds(30))
      std::this_thread::sleep_for(Microseconds(100));
    all.push_back(std::chrono::duration_cast<Microseconds>(std::chrono::steady_clock::now() - start));
    trial.pause(5, 10);
  }
  std::nth_element(all.begin(), all.begin() + 5, all.end());
  return all[5];
}

/// Simulates an hour: as many gaps as an hour of rollbacks leaves, which cannot be deleted before the
/// transaction ends.
Outcome foreign_hour(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 1, .writers = 0, .limit = 1, .slow_triggers = false});
  const auto connection = trial.connect();
  const auto usual = latency(trial, *connection, "usual");
  db::Connection foreign(cluster.conninfo("postgres"), "foreign");
  foreign.run("BEGIN");
  foreign.run("SELECT pg_current_xact_id()");
  const int rollbacks = plan.shortened ? 100 : 7200;
  connection->run("SET synchronous_commit = off");
  connection->run(fmt::format(
      "DO $$ BEGIN FOR i IN 1..{} LOOP "
      "INSERT INTO accounts (email, login) VALUES (i || '@gone.example', 'gone' || i); ROLLBACK; "
      "INSERT INTO accounts (email, login) VALUES (i || '@stays.example', 'stays' || i); COMMIT; END LOOP; "
      "END $$",
      rollbacks));
  const auto delivered = [&] {
    return value<bool>(
        *connection,
        "SELECT (SELECT cursor FROM mailroom_queue_state('mailroom')) >= (SELECT max(id) FROM tokens)");
  };
  trial.expect(eventually(delivered, std::chrono::seconds(300)),
               "all is emitted before the transaction ends");
  const auto ids = value<std::int64_t>(
      *connection, "SELECT coalesce(sum(upper(g) - lower(g)), 0) FROM mailroom_gaps h, unnest(h.ids) g");
  trial.expect(ids >= rollbacks, "the ids of the rollbacks stay in gaps");
  // A busy machine slows one of several down, what grows with the gaps all of them.
  const auto bound = 2 * usual + Microseconds(5000);
  auto then = latency(trial, *connection, "then0");
  for (int i = 1; i < 5 && then > bound; ++i)
    then = latency(trial, *connection, fmt::format("then{}", i));
  trial.expect(then <= bound, "latency does not change");
  trial.note(fmt::format("from commit to line, the fastest tenth: {} us before, {} us with {} ids in gaps",
                         usual.count(), then.count(), ids));
  foreign.run("ROLLBACK");
  return trial.finish(1);
}

/// Tokens of a prepared transaction that outlives the server are emitted after its commit.
Outcome prepared_across_restart(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 2, .silent = true});
  for (int round = 0; round < plan.rounds; ++round) {
    auto connection = trial.connect();
    connection->run("BEGIN");
    insert_accounts(*connection, 5, fmt::format("prepared{}-", round));
    connection->run(fmt::format("PREPARE TRANSACTION 'across{}'", round));
    connection.reset();
    trial.pause(300, 600);
    cluster.stop("immediate");
    cluster.start();
    trial.expect_delivery_again();
    trial.pause(1000, 1500);
    trial.connect()->run(fmt::format("COMMIT PREPARED 'across{}'", round));
  }
  return trial.finish(plan.rounds);
}

/// PostgreSQL refuses, as docs/reliability.md quotes, and rolls the transaction back. No collector is
/// polling, because there are no writers.
Outcome prepare_after_notify(Cluster& cluster, const Plan& plan) {
  Trial trial(cluster, plan, {.collectors = 2, .writers = 0});
  const auto connection = trial.connect();
  for (int round = 0; round < plan.rounds; ++round) {
    connection->run("BEGIN");
    insert_accounts(*connection, 3, fmt::format("two-phase{}-", round));
    std::string refusal = "nothing";
    try {
      connection->run(fmt::format("PREPARE TRANSACTION 'refused{}'", round));
    } catch (const db::DatabaseError& error) {
      refusal = error.sqlstate() + " " + error.what();
    }
    trial.expect(
        refusal == "0A000 cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY",
        "PREPARE is refused (" + refusal + ")");
    connection->run("ROLLBACK");
    trial.expect(connection->run("SELECT FROM accounts WHERE login LIKE 'two-phase%'").empty(),
                 "the transaction is rolled back");
  }
  insert_accounts(*connection, 1, "after");
  return trial.finish(plan.rounds);
}

}  // namespace

std::vector<Fault> transaction_faults() {
  return {
      {"late commits", "emitted after their commit, nothing repeated", 8, 1, late_commits, true},
      {"ids in another order than transactions", "each emitted after its commit", 12, 2,
       ids_in_another_order},
      {"foreign write transaction under load", "delivery does not wait for it", 10, 2, foreign_transaction},
      {"an hour of a foreign write transaction", "latency does not change", 1, 1, foreign_hour},
      {"prepared insert across a restart", "emitted after its commit", 4, 1, prepared_across_restart},
      {"PREPARE TRANSACTION after a NOTIFY", "PostgreSQL refuses it, nothing lost", 20, 3,
       prepare_after_notify}};
}

}  // namespace mailroom::test
