// When inserts notify, and which transactions a collector waits for when it starts to listen.

#include "support/waking.hpp"

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::waking_test {
namespace {

/// Collects notifications. The class sends its own notification, which arrives after those of all earlier
/// commits.
class Listener {
 public:
  explicit Listener(const TestDatabase& database)
      : listening_(database.connect()), marking_(database.connect()) {
    listening_->listen("token_insert");
  }

  /// The notifications since the last call.
  std::set<std::string> heard() {
    const auto mark = "mark " + std::to_string(++marks_);
    marking_->run("SELECT pg_notify('token_insert', $1)", mark);
    std::set<std::string> all;
    REQUIRE(eventually([&] {
      all.merge(listening_->take_payloads());
      return all.count(mark) > 0;
    }));
    all.erase(mark);
    return all;
  }

 private:
  std::unique_ptr<db::Connection> listening_;
  std::unique_ptr<db::Connection> marking_;
  int marks_ = 0;
};

const std::set<std::string> nothing;
const std::set<std::string> a_token{""};

/// The tokens that `session` can claim now, all of them.
Ids claim_ids(claim::QueueSession& session) {
  const auto reply = session.claim({.limit = 1000, .partial = true});
  if (!reply.lease) return {};
  auto ids = fetch_ids(session, *reply.lease);
  session.claim({.receipt = claim::Receipt{*reply.lease, {}}});
  return ids;
}

}  // namespace

TEST_CASE("inserts notify unless a collector is polling, and again when it listens or is gone") {
  TestDatabase database;
  const auto writer = database.connect();
  Listener listener(database);
  auto collector = attach(database);
  insert_accounts(*writer, 1, "listening");
  CHECK(listener.heard() == a_token);
  REQUIRE(collector->arrange(claim::Waking::stay_polling));
  insert_accounts(*writer, 3, "polling");
  writer->run("INSERT INTO tokens (account, action) SELECT id, 'activation' FROM accounts LIMIT 1");
  CHECK(listener.heard() == nothing);
  collector->arrange(claim::Waking::start_listening);
  insert_accounts(*writer, 1, "listening again");
  CHECK(listener.heard() == a_token);
  REQUIRE(collector->arrange(claim::Waking::stay_polling));
  collector.reset();
  REQUIRE(eventually([&] { return !somebody_is_polling(*writer); }));
  insert_accounts(*writer, 1, "gone");
  CHECK(listener.heard() == a_token);
}

TEST_CASE("one collector polls for all, and an insert leaves no lock behind") {
  TestDatabase database;
  const auto writer = database.connect();
  const auto first = attach(database);
  const auto second = attach(database);
  writer->run("BEGIN");
  insert_accounts(*writer, 100);
  // The insert tried the lock, and released it before its commit.
  CHECK(first->arrange(claim::Waking::stay_polling));
  CHECK_FALSE(second->arrange(claim::Waking::stay_polling));
  second->arrange(claim::Waking::start_listening);
  CHECK(somebody_is_polling(*writer));
  first->arrange(claim::Waking::start_listening);
  CHECK_FALSE(somebody_is_polling(*writer));
  CHECK(second->arrange(claim::Waking::stay_polling));
  writer->run("COMMIT");
}

TEST_CASE(
    "a collector that starts to listen waits for transactions that have not notified, and sees their "
    "tokens") {
  TestDatabase database;
  const auto writer = database.connect();
  const auto with_savepoints = database.connect();
  const auto later = database.connect();
  const auto collector = attach(database);
  collector->arrange(claim::Waking::ask);
  REQUIRE(collector->arrange(claim::Waking::stay_polling));
  writer->run("BEGIN");
  insert_accounts(*writer, 2, "silent");
  with_savepoints->run("BEGIN; SAVEPOINT a");
  insert_accounts(*with_savepoints, 1, "rolled back");
  with_savepoints->run("ROLLBACK TO a; SAVEPOINT b");
  insert_accounts(*with_savepoints, 1, "released");
  with_savepoints->run("RELEASE b");
  collector->arrange(claim::Waking::start_listening);
  CHECK(collector->arrange(claim::Waking::ask));
  // This transaction notifies, so the collector need not wait for it.
  later->run("BEGIN");
  insert_accounts(*later, 1, "later");
  CHECK(claim_ids(*collector).empty());
  with_savepoints->run("COMMIT");
  CHECK(collector->arrange(claim::Waking::ask));
  CHECK(claim_ids(*collector) == Ids{4});
  writer->run("COMMIT");
  CHECK_FALSE(collector->arrange(claim::Waking::ask));
  CHECK(claim_ids(*collector) == Ids{1, 2});
  later->run("COMMIT");
}

TEST_CASE("a transaction prepared before it could notify is waited for until it is committed") {
  TestDatabase database;
  const auto writer = database.connect();
  const auto collector = attach(database);
  REQUIRE_FALSE(prepare_insert(*writer, "notifies"));
  REQUIRE(collector->arrange(claim::Waking::stay_polling));
  REQUIRE(prepare_insert(*writer, "before"));
  writer->run("BEGIN");
  insert_accounts(*writer, 1, "while");
  collector->arrange(claim::Waking::start_listening);
  CHECK(collector->arrange(claim::Waking::ask));
  writer->run("PREPARE TRANSACTION 'while'");
  CHECK(collector->arrange(claim::Waking::ask));
  writer->run("COMMIT PREPARED 'before'");
  CHECK(collector->arrange(claim::Waking::ask));
  writer->run("COMMIT PREPARED 'while'");
  CHECK_FALSE(collector->arrange(claim::Waking::ask));
  CHECK(claim_ids(*collector).size() == 2);
}

TEST_CASE("a new session waits for open transactions, because an earlier session may have been polling") {
  TestDatabase database;
  const auto writer = database.connect();
  auto before = attach(database);
  REQUIRE(before->arrange(claim::Waking::stay_polling));
  writer->run("BEGIN");
  insert_accounts(*writer, 1);
  before.reset();
  const auto after = attach(database);
  CHECK(after->arrange(claim::Waking::ask));
  writer->run("COMMIT");
  CHECK_FALSE(after->arrange(claim::Waking::ask));
}

TEST_CASE("a collector that stops polling notifies the others of transactions that have not notified") {
  TestDatabase database;
  const auto writer = database.connect();
  Listener listener(database);
  const auto first = attach(database);
  const auto second = attach(database);
  REQUIRE(first->arrange(claim::Waking::stay_polling));
  writer->run("BEGIN");
  insert_accounts(*writer, 1, "silent");
  CHECK(second->take_notifications() == claim::Notified::no);
  first->arrange(claim::Waking::drain);
  CHECK_FALSE(somebody_is_polling(*writer));
  REQUIRE(eventually([&] { return second->take_notifications() == claim::Notified::drain; }));
  second->arrange(claim::Waking::start_listening);
  CHECK(second->arrange(claim::Waking::ask));
  writer->run("COMMIT");
  CHECK_FALSE(second->arrange(claim::Waking::ask));
  CHECK(claim_ids(*second) == Ids{1});
  CHECK(listener.heard() == std::set<std::string>{"drain"});
  insert_accounts(*writer, 1, "loud");
  REQUIRE(eventually([&] { return second->take_notifications() == claim::Notified::poll; }));
}

TEST_CASE("a role that may only insert accounts notifies unless a collector is polling") {
  TestDatabase database;
  const auto owner = database.connect();
  const auto role = database.name() + "_inserter";
  owner->run("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC");
  owner->run("CREATE ROLE " + role);
  owner->run("GRANT INSERT (email, login) ON accounts TO " + role);
  owner->run("GRANT USAGE ON SEQUENCE accounts_id_seq TO " + role);
  const auto collector = attach(database);
  Listener listener(database);
  const auto writer = database.connect();
  writer->run("SET ROLE " + role);
  insert_accounts(*writer, 1, "listening");
  CHECK(listener.heard() == a_token);
  REQUIRE(collector->arrange(claim::Waking::stay_polling));
  insert_accounts(*writer, 1, "polling");
  CHECK(listener.heard() == nothing);
  writer->run("RESET ROLE");
  owner->run("DROP OWNED BY " + role);
  owner->run("DROP ROLE " + role);
}

}  // namespace mailroom::test::waking_test
