// What the feed finds at each look: whatever order transactions commit in, everything once.

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_feed.hpp"

using namespace mailroom;
using namespace mailroom::test;

namespace {

std::unique_ptr<Connection> begin(const TestDatabase& database) {
  auto connection = database.connect();
  connection->run("BEGIN");
  return connection;
}

void consume(Connection& connection, std::int64_t token) {
  connection.run("UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id = $1", token);
}

}  // namespace

TEST_CASE("a token that is committed late is told after later ones, once") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  const auto late = begin(database);
  insert_accounts(*late, 2, "late");
  insert_accounts(*connection, 1);
  CHECK(feed.poll() == Told{"created 3"});
  CHECK(feed.open_gaps() == 1);
  CHECK(feed.poll() == Told{});
  late->run("COMMIT");
  CHECK(feed.poll() == Told{"created 1", "created 2"});
  CHECK(feed.open_gaps() == 0);
  CHECK(feed.poll() == Told{});
}

TEST_CASE("a gap is forgotten when its transaction, whole or in part, is rolled back") {
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
  CHECK(feed.poll() == Told{"created 4"});
  undone->run("ROLLBACK");
  partly->run("COMMIT");
  CHECK(feed.poll() == Told{"created 3"});
  CHECK(feed.open_gaps() == 0);
}

TEST_CASE(
    "a gap of a transaction that had ended before it was found is settled though nothing ends any more") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  const auto undone = begin(database);
  insert_accounts(*undone, 1, "undone");
  undone->run("ROLLBACK");
  insert_accounts(*connection, 1);
  CHECK(feed.poll() == Told{"created 2"});
  CHECK(eventually([&] { return feed.poll().empty() && feed.open_gaps() == 0; }, std::chrono::seconds(1)));
}

TEST_CASE("an id that was drawn before its transaction had an id of its own is waited for") {
  TestDatabase database;
  const auto connection = database.connect();
  // PostgreSQL gives a transaction an id at its first nextval() of 32; the next one needs none.
  connection->run("SELECT nextval('mailroom_operations_id_seq')");
  insert_accounts(*connection, 1);
  TestFeed feed(database);
  std::unique_ptr<Connection> late;
  std::int64_t id = 0;
  // Nor does the first after a checkpoint do without.
  REQUIRE(eventually([&] {
    late = begin(database);
    id = value<std::int64_t>(*late, "SELECT nextval('mailroom_operations_id_seq')");
    return value<bool>(*late, "SELECT pg_current_xact_id_if_assigned() IS NULL");
  }));
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 1");
  CHECK(feed.poll() == Told{"suspended 1"});
  CHECK(feed.poll() == Told{});
  late->run(
      "INSERT INTO mailroom_operations (id, kind, actor, account) OVERRIDING SYSTEM VALUE "
      "VALUES ($1, 'restore', 'test', 1)",
      id);
  late->run("COMMIT");
  CHECK(feed.poll() == Told{"restored 1"});
}

TEST_CASE("a prepared transaction keeps its gap open until it is committed") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("ALTER TABLE tokens DISABLE TRIGGER after_token_inserted");
  TestFeed feed(database);
  const auto late = begin(database);
  insert_accounts(*late, 1, "late");
  insert_accounts(*connection, 1);
  CHECK(feed.poll() == Told{"created 2"});
  late->run("PREPARE TRANSACTION '" + database.name() + "'");
  CHECK(feed.poll() == Told{});
  CHECK(feed.open_gaps() == 1);
  connection->run("COMMIT PREPARED '" + database.name() + "'");
  CHECK(feed.poll() == Told{"created 1"});
  CHECK(feed.open_gaps() == 0);
}

TEST_CASE("what was open at the start comes out when it is committed, and the past does not come again") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  consume(*connection, 1);
  const auto late = begin(database);
  insert_accounts(*late, 1, "late");
  consume(*late, 2);
  insert_accounts(*connection, 1, "new");
  TestFeed feed(database, TestFeed::everything());
  Told past;
  for (const auto& event : feed.take())
    past.push_back(short_text(event));
  std::sort(past.begin(), past.end());
  CHECK(past == Told{"consumed 1", "created 1", "created 2", "created 4"});
  CHECK(feed.poll() == Told{});
  late->run("COMMIT");
  CHECK(feed.poll() == Told{"created 3", "consumed 2"});
}

TEST_CASE("a consumption is told once, also within a subtransaction and beside an older transaction") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  TestFeed feed(database);
  const auto older = begin(database);
  older->run("SELECT pg_current_xact_id()");
  const auto late = begin(database);
  late->run("SAVEPOINT one");
  consume(*late, 1);
  consume(*connection, 2);
  CHECK(feed.poll() == Told{"consumed 2"});
  late->run("COMMIT");
  CHECK(feed.poll() == Told{"consumed 1"});
  // A new version of a row that was told.
  connection->run("UPDATE tokens SET expires_at = expires_at + 1 WHERE id = 1");
  CHECK(feed.poll() == Told{});
  older->run("ROLLBACK");
  CHECK(feed.poll() == Told{});
}

TEST_CASE("a consumption of a transaction that ran longer than what is usually read comes when it ends") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  TestFeed feed(database, TestFeed::nothing(), {}, 1);
  const auto long_running = begin(database);
  long_running->run("SELECT now()");
  consume(*long_running, 1);
  for (int i = 0; i < 4; ++i) {
    connection->run("SELECT pg_sleep(1), pg_current_xact_id()");
    CHECK(feed.poll() == Told{});
  }
  consume(*connection, 2);
  CHECK(feed.poll() == Told{"consumed 2"});
  long_running->run("COMMIT");
  CHECK(feed.poll() == Told{"consumed 1"});
  CHECK(feed.poll() == Told{});
}

TEST_CASE("the feed goes on where it was after its session was ended") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  const auto late = begin(database);
  insert_accounts(*late, 1, "late");
  insert_accounts(*connection, 1);
  CHECK(feed.poll() == Told{"created 2"});
  connection->run("SELECT pg_terminate_backend($1, 10000)", feed.session().connection().backend_pid());
  insert_accounts(*connection, 1, "meanwhile");
  CHECK_THROWS_AS(feed.poll(), ConnectionLost);
  feed.reconnect();
  late->run("COMMIT");
  CHECK(feed.poll() == Told{"created 1", "created 3"});
}

TEST_CASE("what was found but not told when the session ended is told in the next") {
  TestDatabase database;
  const auto connection = database.connect();
  TestFeed feed(database);
  insert_accounts(*connection, 1);
  feed.feed().poll(feed.session());
  connection->run("SELECT pg_terminate_backend($1, 10000)", feed.session().connection().backend_pid());
  CHECK_THROWS_AS(feed.take(), ConnectionLost);
  feed.reconnect();
  CHECK(feed.poll() == Told{"created 1"});
}

TEST_CASE("a sequence that was set back is said so, and followed from there") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  TestFeed feed(database);
  connection->run("TRUNCATE tokens RESTART IDENTITY");
  CHECK(feed.poll() == Told{});
  CHECK(feed.log().find("the sequence has been set back") != std::string::npos);
  insert_accounts(*connection, 1, "new");
  CHECK(feed.poll() == Told{"created 1"});
}

TEST_CASE("an id far above the sequence does not hide those that are drawn next") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  TestFeed feed(database);
  connection->run(
      "SET session_replication_role = replica; "
      "INSERT INTO tokens (id, account, action) VALUES (1000000, 1, 'activation')");
  CHECK(feed.poll() == Told{});
  insert_accounts(*connection, 1, "new");
  connection->run("SET session_replication_role = origin");
  insert_accounts(*connection, 1, "newer");
  CHECK(feed.poll() == Told{"created 2"});
}

TEST_CASE("a session of the feed can only read, in one snapshot, and gets no transaction id") {
  TestDatabase database;
  TestFeed feed(database);
  auto& connection = feed.session().connection();
  CHECK_THROWS_AS(connection.run("UPDATE jobs SET last_seq = 5"), DatabaseError);
  connection.transact([](pqxx::work& transaction) {
    CHECK(std::string(transaction.exec("SHOW transaction_isolation")[0][0].c_str()) == "repeatable read");
  });
  feed.session().in_snapshot([](const FeedSnapshot& snapshot) {
    snapshot.newest_id(Followed::tokens);
    const auto row = snapshot.transaction().exec("SELECT pg_current_xact_id_if_assigned() IS NULL")[0];
    CHECK(row[0].as<bool>());
  });
}
