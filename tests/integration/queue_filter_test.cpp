// Queues that take some actions only: each emits what it takes, once, and nothing else.

#include <fmt/format.h>
#include <map>
#include <random>

#include "status/queue_status.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::queue_filter_test {
namespace {

void create_queue(db::Connection& connection, const std::string& name, const std::string& definition,
                  std::int64_t cursor = 0) {
  connection.run("SELECT mailroom_create_queue($1, $2, $3::jsonb, 'token_insert')", name, cursor, definition);
}

constexpr const char* recoveries = R"({"actions": ["password_recovery"]})";
constexpr const char* activations = R"({"actions": ["activation"]})";

/// A collector of one queue, driven by the test.
struct Consumer {
  std::unique_ptr<claim::PgQueueSession> session;
  std::map<std::int64_t, int> emitted{};
  std::int64_t skipped = 0;
  std::optional<claim::Receipt> receipt{};

  Consumer(const TestDatabase& database, const std::string& queue) : session(attach(database, queue)) {}

  /// One claim, and the emission of its batch; false if there was nothing.
  bool step(int limit, bool partial = true) {
    const auto reply = session->claim({.limit = limit, .partial = partial, .receipt = receipt});
    receipt.reset();
    skipped += reply.skipped;
    if (!reply.lease) return reply.more;
    const auto fetched = fetch_due(*session, *reply.lease);
    CHECK(static_cast<int>(fetched.ids.size()) <= limit);
    for (const auto id : fetched.ids)
      ++emitted[id];
    skipped += fetched.counts.skipped();
    receipt = claim::Receipt{*reply.lease, fetched.counts};
    return true;
  }

  void drain(int limit = 10) {
    while (step(limit)) {
    }
  }
};

/// The tokens of `action` that exist, each once; of every action if it is empty.
std::map<std::int64_t, int> each_once(db::Connection& connection, const std::string& action) {
  std::map<std::int64_t, int> once;
  for (const auto& row : connection.run("SELECT id FROM tokens WHERE $1 = '' OR action::text = $1", action))
    once[row[0].as<std::int64_t>()] = 1;
  return once;
}

void insert_token(db::Connection& connection, const std::string& action) {
  connection.run(
      "INSERT INTO tokens (account, action) SELECT id, $1::token_action FROM accounts WHERE status = $2::account_status "
      "ORDER BY random() LIMIT 1",
      action, action == "activation" ? "provisioned" : "active");
}

/// Accounts of both kinds; the cursors begin after their tokens.
void prepare(db::Connection& connection) {
  insert_accounts(connection, 20);
  connection.run("UPDATE accounts SET status = 'active' WHERE id > 10");
  connection.run("DELETE FROM tokens");
}

}  // namespace

TEST_CASE("a queue emits the tokens of its actions, and counts no others as skipped") {
  TestDatabase database;
  const auto connection = database.connect();
  prepare(*connection);
  create_queue(*connection, "recovery", recoveries);
  create_queue(*connection, "activation", activations);
  for (int i = 0; i < 40; ++i)
    insert_token(*connection, i % 3 == 0 ? "password_recovery" : "activation");
  Consumer recovery(database, "recovery");
  Consumer activation(database, "activation");
  Consumer all(database, "mailroom");
  for (auto* consumer : {&recovery, &activation, &all})
    consumer->drain();
  CHECK(recovery.emitted == each_once(*connection, "password_recovery"));
  CHECK(activation.emitted == each_once(*connection, "activation"));
  CHECK(all.emitted == each_once(*connection, ""));
  CHECK(recovery.skipped == 0);
  CHECK(value<int>(*connection,
                   "SELECT count(*) FROM mailroom_batches WHERE skipped_expired + skipped_consumed + "
                   "skipped_status + skipped_invalid > 0") == 0);
}

TEST_CASE("late commits reach the queues that take them, whatever lies between") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    TestDatabase database;
    const auto connection = database.connect();
    prepare(*connection);
    create_queue(*connection, "recovery", recoveries);
    create_queue(*connection, "activation", activations);
    std::vector<std::unique_ptr<Consumer>> consumers;
    for (const auto* queue : {"recovery", "activation", "mailroom"})
      consumers.push_back(std::make_unique<Consumer>(database, queue));
    std::vector<std::unique_ptr<db::Connection>> open;
    for (int i = 0; i < 120; ++i) {
      const auto what = random() % 10;
      if (what < 3) {
        open.push_back(database.connect());
        open.back()->run("BEGIN");
        for (auto count = 1 + random() % 4; count > 0; --count)
          insert_token(*open.back(), random() % 2 == 0 ? "activation" : "password_recovery");
      } else if (what < 5 && !open.empty()) {
        const auto which = random() % open.size();
        open[which]->run(random() % 4 == 0 ? "ROLLBACK" : "COMMIT");
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
      } else if (what < 8) {
        insert_token(*connection, random() % 2 == 0 ? "activation" : "password_recovery");
      } else {
        consumers[random() % consumers.size()]->step(1 + static_cast<int>(random() % 6), random() % 2 == 0);
      }
    }
    for (const auto& transaction : open)
      transaction->run("COMMIT");
    for (const auto& consumer : consumers)
      consumer->drain(7);
    CHECK(consumers[0]->emitted == each_once(*connection, "password_recovery"));
    CHECK(consumers[1]->emitted == each_once(*connection, "activation"));
    CHECK(consumers[2]->emitted == each_once(*connection, ""));
  }
}

TEST_CASE("a late transaction with many tokens of another action hides none of the queue's") {
  TestDatabase database;
  const auto connection = database.connect();
  prepare(*connection);
  create_queue(*connection, "recovery", recoveries);
  const auto late = database.connect();
  late->run("BEGIN");
  late->run("INSERT INTO tokens (account, action) SELECT 1, 'activation' FROM generate_series(1, 12000)");
  late->run(
      "INSERT INTO tokens (account, action) SELECT 11, 'password_recovery' FROM generate_series(1, 25)");
  insert_token(*connection, "password_recovery");
  Consumer recovery(database, "recovery");
  recovery.drain();
  CHECK(recovery.emitted.size() == 1);
  late->run("COMMIT");
  recovery.drain();
  CHECK(recovery.emitted == each_once(*connection, "password_recovery"));
  // Transactions of other tests on the same server delay the deletion of the gap.
  CHECK(eventually([&] {
    recovery.drain();
    return value<int>(*connection, "SELECT count(*) FROM mailroom_gaps") == 0;
  }));
}

TEST_CASE("a few tokens of other actions above the cursor cost no row, and the queue counts as idle") {
  TestDatabase database;
  const auto connection = database.connect();
  prepare(*connection);
  create_queue(*connection, "recovery", recoveries,
               value<std::int64_t>(*connection, "SELECT last_value FROM tokens_id_seq"));
  Consumer recovery(database, "recovery");
  recovery.drain();
  const auto rows = [&] { return value<int>(*connection, "SELECT count(*) FROM mailroom_batches"); };
  const auto idle = [&] {
    return value<int>(*connection, "SELECT count(*) FROM mailroom_idle_cursor('recovery')");
  };
  const auto before = rows();
  for (int i = 0; i < 50; ++i) {
    insert_token(*connection, "activation");
    recovery.drain();
  }
  CHECK(rows() == before);
  CHECK(idle() == 1);
  CHECK(status::read_queue_status(*connection, "recovery").pending.total() == 0);
  connection->run(
      "INSERT INTO tokens (account, action) SELECT 1, 'activation' FROM generate_series(1, 1000)");
  CHECK(idle() == 0);
  recovery.drain();
  CHECK(rows() == before + 1);
  insert_token(*connection, "password_recovery");
  CHECK(idle() == 0);
  CHECK(status::read_queue_status(*connection, "recovery").pending.total() == 1);
  recovery.drain();
  CHECK(recovery.emitted.size() == 1);
}

TEST_CASE("a rewind and a replay of a queue emit its own tokens again, and no others") {
  TestDatabase database;
  const auto connection = database.connect();
  prepare(*connection);
  create_queue(*connection, "recovery", recoveries);
  for (int i = 0; i < 10; ++i)
    insert_token(*connection, i % 2 == 0 ? "password_recovery" : "activation");
  Consumer recovery(database, "recovery");
  recovery.drain();
  REQUIRE(recovery.emitted.size() == 5);
  CHECK(value<int>(*connection, "SELECT replayed FROM mailroom_rewind('recovery', 0, 100, '{}')") == 5);
  recovery.drain();
  CHECK(value<int>(*connection, "SELECT mailroom_replay('recovery', ARRAY(SELECT id FROM tokens), '{}')") ==
        5);
  recovery.drain();
  CHECK(recovery.emitted.size() == 5);
  for (const auto& [id, times] : recovery.emitted)
    CHECK(times == 3);
}

TEST_CASE("a paused queue leases nothing, finishes what is leased, and goes on where it was") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 30);
  Consumer consumer(database, "mailroom");
  CHECK(consumer.step(10));
  CHECK(value<bool>(*connection, "SELECT mailroom_pause_queue('mailroom', true, 'token_insert')"));
  const auto paused = consumer.session->claim({.limit = 10, .partial = true, .receipt = consumer.receipt});
  consumer.receipt.reset();
  CHECK_FALSE(paused.lease);
  CHECK_FALSE(paused.wait);
  CHECK_FALSE(paused.receipt_void);
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL") == 0);
  // What expires meanwhile is skipped and counted.
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id > 25");
  CHECK(value<bool>(*connection, "SELECT mailroom_pause_queue('mailroom', false, 'token_insert')"));
  consumer.drain();
  CHECK(consumer.emitted.size() == 25);
  CHECK(consumer.skipped == 5);
}

TEST_CASE("a dropped queue is unknown to its consumers, and a new one of its name begins anew") {
  TestDatabase database;
  const auto connection = database.connect();
  create_queue(*connection, "copy", "{}");
  insert_accounts(*connection, 12);
  Consumer consumer(database, "copy");
  CHECK(consumer.step(5));
  connection->run("SELECT mailroom_drop_queue('copy', 'token_insert')");
  CHECK_THROWS_AS(consumer.step(5), db::DatabaseError);
  CHECK_THROWS_AS(attach(database, "copy"), db::DatabaseError);
  create_queue(*connection, "copy", "{}", 8);
  Consumer next(database, "copy");
  next.drain();
  CHECK(next.emitted.size() == 4);
}

TEST_CASE("queues that share a budget never take more than it allows together") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run(
      R"(SELECT mailroom_set_budget('provider', '{"tokens": 1, "milliseconds": 1000000, "burst": 6}', 'x'))");
  create_queue(*connection, "copy", R"({"budget": "provider"})");
  connection->run(R"(SELECT mailroom_set_queue('mailroom', '{"budget": "provider", "rate": {"tokens": 1,
                     "milliseconds": 1000000, "burst": 2}}', 'x'))");
  insert_accounts(*connection, 12);
  Consumer one(database, "mailroom");
  Consumer two(database, "copy");
  one.drain();
  two.drain();
  CHECK(one.emitted.size() == 2);
  CHECK(two.emitted.size() == 4);
}

TEST_CASE(
    "a claim within a rate waits for a full batch when enough tokens are due, and shows those that are not") {
  TestDatabase database;
  const auto connection = database.connect();
  set_rate(*connection, "mailroom", 1000, 10);
  insert_accounts(*connection, 25);
  const auto session = attach(database);
  const auto first = session->claim({.limit = 10});
  REQUIRE(first.lease);
  const auto receipt = claim::Receipt{*first.lease, fetch_due(*session, *first.lease).counts};
  const auto wait = session->claim({.limit = 10, .receipt = receipt});
  CHECK_FALSE(wait.lease);
  CHECK(*wait.wait > Milliseconds(9'990'000));
  CHECK(wait.pending == 0);
  connection->run("UPDATE mailroom_budgets SET taken_until = taken_until - interval '4500 s'");
  // Four may be taken now, which a partial claim does.
  const auto full = session->claim({.limit = 10});
  CHECK_FALSE(full.lease);
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id > 17");
  const auto few = session->claim({.limit = 10});
  CHECK_FALSE(few.lease);
  CHECK(few.pending == 7);
  const auto partial = session->claim({.limit = 10, .partial = true});
  REQUIRE(partial.lease);
  CHECK(fetch_ids(*session, *partial.lease) == Ids{11, 12, 13, 14});
}

}  // namespace mailroom::test::queue_filter_test
