// What the feed shows at each poll: every event once, in whatever order transactions commit.

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_feed.hpp"

namespace mailroom::test::feed_test {
namespace {

std::unique_ptr<db::Connection> begin(const TestDatabase& database) {
  auto connection = database.connect();
  connection->run("BEGIN");
  return connection;
}

void consume(db::Connection& connection, std::int64_t token, int seconds_ago = 0) {
  connection.run("UPDATE tokens SET consumed_at = extract(epoch FROM now()) - $2::integer WHERE id = $1",
                 token, seconds_ago);
}

/// Polls until an event is shown: the whole window is read only every few seconds.
Shown next_shown(TestFeed& feed) {
  Shown shown;
  eventually([&] {
    shown = feed.poll();
    return !shown.empty();
  });
  return shown;
}

}  // namespace

TEST_CASE("a token that is committed late is shown after later ones, once") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  const auto late = begin(database);
  insert_accounts(*late, 2, "late");
  insert_accounts(*connection, 1);
  CHECK(feed.poll() == Shown{"created 3"});
  CHECK(feed.poll() == Shown{});
  late->run("COMMIT");
  CHECK(feed.poll() == Shown{"created 1", "created 2"});
  CHECK(feed.poll() == Shown{});
}

TEST_CASE("an event that is committed late is shown, within the window") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  TestFeed feed(database);
  consume(*connection, 1);
  CHECK(next_shown(feed) == Shown{"consumed 1"});
  consume(*connection, 2, 200);
  CHECK(next_shown(feed) == Shown{"consumed 2"});
}

TEST_CASE("a small window is read by every poll") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  TestFeed feed(database, TestFeed::nothing(), {}, std::chrono::seconds(5));
  consume(*connection, 1, 1);
  // Older than the window.
  consume(*connection, 2, 60);
  CHECK(feed.poll() == Shown{"consumed 1"});
}

TEST_CASE("a token that was rolled back is not shown") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  const auto undone = begin(database);
  insert_accounts(*undone, 1, "undone");
  const auto partly = begin(database);
  partly->run("SAVEPOINT before");
  insert_accounts(*partly, 1, "partly");
  partly->run("ROLLBACK TO before");
  insert_accounts(*partly, 1, "kept");
  insert_accounts(*connection, 1);
  CHECK(feed.poll() == Shown{"created 4"});
  undone->run("ROLLBACK");
  partly->run("COMMIT");
  CHECK(feed.poll() == Shown{"created 3"});
  CHECK(feed.poll() == Shown{});
}

TEST_CASE("a prepared transaction's token is shown when it is committed") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("ALTER TABLE tokens DISABLE TRIGGER after_token_inserted");
  TestFeed feed(database);
  const auto late = begin(database);
  insert_accounts(*late, 1, "late");
  insert_accounts(*connection, 1);
  CHECK(feed.poll() == Shown{"created 2"});
  late->run("PREPARE TRANSACTION '" + database.name() + "'");
  CHECK(feed.poll() == Shown{});
  connection->run("COMMIT PREPARED '" + database.name() + "'");
  CHECK(feed.poll() == Shown{"created 1"});
}

TEST_CASE("transactions open at the start are shown on commit, and past events are not shown again") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  consume(*connection, 1);
  const auto late = begin(database);
  insert_accounts(*late, 1, "late");
  consume(*late, 2);
  insert_accounts(*connection, 1, "new");
  TestFeed feed(database, TestFeed::everything());
  Shown past;
  for (const auto& event : feed.take())
    past.push_back(short_text(event));
  std::sort(past.begin(), past.end());
  CHECK(past == Shown{"consumed 1", "created 1", "created 2", "created 4"});
  CHECK(feed.poll() == Shown{});
  late->run("COMMIT");
  CHECK(feed.poll() == Shown{"created 3", "consumed 2"});
}

TEST_CASE("a consumption is shown once, even if its row changes again") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  TestFeed feed(database);
  const auto late = begin(database);
  late->run("SAVEPOINT one");
  consume(*late, 1);
  consume(*connection, 2);
  CHECK(feed.poll() == Shown{"consumed 2"});
  late->run("COMMIT");
  CHECK(feed.poll() == Shown{"consumed 1"});
  connection->run("UPDATE tokens SET expires_at = expires_at + 1 WHERE id = 1");
  CHECK(feed.poll() == Shown{});
}

TEST_CASE("a token is shown in the state in which it was first seen") {
  TestDatabase database;
  const auto connection = database.connect();
  feed::EventFilter filter;
  filter.states = {"consumed"};
  TestFeed feed(database, TestFeed::nothing(), filter);
  insert_accounts(*connection, 2);
  CHECK(feed.poll() == Shown{});
  consume(*connection, 1);
  CHECK(feed.poll() == Shown{"consumed 1"});
  insert_accounts(*connection, 1, "late");
  consume(*connection, 3);
  CHECK(feed.poll() == Shown{"created 3", "consumed 3"});
}

TEST_CASE("the feed resumes where it was after its session was terminated") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  const auto late = begin(database);
  insert_accounts(*late, 1, "late");
  insert_accounts(*connection, 1);
  CHECK(feed.poll() == Shown{"created 2"});
  connection->run("SELECT pg_terminate_backend($1, 10000)", feed.session().backend_pid());
  insert_accounts(*connection, 1, "meanwhile");
  CHECK_THROWS_AS(feed.poll(), db::ConnectionLost);
  feed.reconnect();
  late->run("COMMIT");
  CHECK(feed.poll() == Shown{"created 1", "created 3"});
}

TEST_CASE("events that were found but not shown when the session ended are shown in the next session") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  insert_accounts(*connection, 1);
  feed.feed().poll();
  connection->run("SELECT pg_terminate_backend($1, 10000)", feed.session().backend_pid());
  CHECK_THROWS_AS(feed.take(), db::ConnectionLost);
  feed.reconnect();
  CHECK(feed.poll() == Shown{"created 1"});
}

TEST_CASE("tokens created after a TRUNCATE with the ids of earlier tokens are shown") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  connection->run("UPDATE tokens SET created_at = created_at - 10");
  TestFeed feed(database);
  connection->run("TRUNCATE tokens RESTART IDENTITY");
  CHECK(feed.poll() == Shown{});
  insert_accounts(*connection, 1, "new");
  CHECK(feed.poll() == Shown{"created 1"});
}

TEST_CASE("a session of the feed is read-only, uses one snapshot, and gets no transaction id") {
  TestDatabase database;
  TestFeed feed(database);
  auto& connection = feed.session();
  CHECK_THROWS_AS(connection.run("UPDATE jobs SET last_seq = 5"), db::DatabaseError);
  connection.transact([](pqxx::work& transaction) {
    CHECK(std::string(transaction.exec("SHOW transaction_isolation")[0][0].c_str()) == "repeatable read");
  });
  feed.poll();
  connection.transact([](pqxx::work& transaction) {
    feed::HistoryRequest request;
    request.since = Moment();
    feed::read_history(transaction, request, {});
    CHECK(transaction.exec("SELECT pg_current_xact_id_if_assigned() IS NULL")[0][0].as<bool>());
  });
}

}  // namespace mailroom::test::feed_test
