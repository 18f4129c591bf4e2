// What status costs, what it may read, and how a watch survives lost sessions.

#include <csignal>

#include "base/actor.hpp"
#include "health/queue_health.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/old_tokens.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::status_cost_test {
namespace {

/// Old tokens below the cursor, which need not be emitted.
void add_history(db::Connection& connection, int count) {
  add_old_tokens(connection, count);
  connection.run(
      "INSERT INTO mailroom_batches (queue, ids, collector, emitted_at, cursor, open_from, gap_ids) "
      "SELECT 'mailroom', '{}', 0, now(), last_value, 1, '{}' FROM tokens_id_seq");
}

/// The blocks of tokens and its indexes that one report touches, and the rows that it reads by a sequential
/// scan.
std::pair<std::int64_t, std::int64_t> cost_of_a_report(const TestDatabase& database) {
  const auto connection = database.connect();
  return connection->transact([&](pqxx::work& transaction) {
    status::read_queue_status_within(transaction, "mailroom");
    const auto row = db::Connection::execute(
        transaction,
        "SELECT sum(pg_stat_get_xact_blocks_fetched(c.oid)), "
        "sum(pg_stat_get_xact_tuples_returned(c.oid)) FILTER (WHERE c.relkind = 'r') FROM pg_class c "
        "WHERE c.oid = 'tokens'::regclass "
        "OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = 'tokens'::regclass)")[0];
    return std::pair(row[0].as<std::int64_t>(), row[1].as<std::int64_t>());
  });
}

/// A role that may read the queue; it is dropped with the test.
class Reader {
 public:
  Reader(db::Connection& connection, const std::string& name) : connection_(connection), name_(name) {
    connection_.run("CREATE ROLE " + name_ + " LOGIN");
    connection_.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + name_);
    connection_.run("GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO " + name_);
  }
  ~Reader() {
    connection_.run("DROP OWNED BY " + name_);
    connection_.run("DROP ROLE " + name_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

 private:
  db::Connection& connection_;
  std::string name_;
};

}  // namespace

TEST_CASE("a report costs the same however many tokens are below the cursor") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  add_history(*connection, 2'000);
  insert_accounts(*connection, 3, "new");
  const auto [few, few_scanned] = cost_of_a_report(database);
  add_history(*connection, 200'000);
  insert_accounts(*connection, 3, "newer");
  const auto [many, many_scanned] = cost_of_a_report(database);
  CHECK(few > 0);
  // An index or two may have one level more, also of those that each of the accounts is looked up in.
  CHECK(many <= few + 16);
  CHECK(few_scanned == 0);
  CHECK(many_scanned == 0);
}

TEST_CASE("many waiting tokens are estimated, whether all of them are due or few") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 20'000);
  const auto all = status::read_queue_status(*connection, "mailroom");
  CHECK(all.pending.estimated);
  CHECK_FALSE(all.pending.oldest_estimated);
  CHECK(all.pending.total() == 20'000);
  connection->run("UPDATE tokens SET expires_at = 5 WHERE id % 4 <> 0");
  const auto quarter = status::read_queue_status(*connection, "mailroom").pending.total();
  CHECK(quarter > 4'500);
  CHECK(quarter < 5'500);
  // None of the first tokens is due; the samples find the rest.
  connection->run("UPDATE tokens SET expires_at = 5 WHERE id <= 19000");
  const auto last = status::read_queue_status(*connection, "mailroom").pending;
  CHECK(last.total() == 250);
  CHECK(last.oldest_estimated);
  CHECK(last.oldest_created_at);
}

TEST_CASE("up to 5,000 waiting tokens are counted") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5'000);
  const auto status = status::read_queue_status(*connection, "mailroom");
  CHECK(status.pending.total() == 5'000);
  CHECK_FALSE(status.pending.estimated);
}

TEST_CASE("a large replay is estimated") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 8'000);
  connection->run("SELECT mailroom_rewind('mailroom', 8000, 0, '{}')");
  connection->run("SELECT mailroom_replay('mailroom', ARRAY(SELECT generate_series(1, 8000)), '{}')");
  const auto status = status::read_queue_status(*connection, "mailroom");
  CHECK(status.replay_ids == 8'000);
  CHECK(status.pending.estimated);
  CHECK(status.pending.in_replay == 8'000);
}

TEST_CASE("without pg_monitor other users' sessions are named, and hidden columns are reported") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto name = database.name() + "_looker";
  const Reader looker(*connection, name);
  const auto session = attach(database);
  const auto open = database.connect("shop");
  open->run("BEGIN");
  insert_accounts(*open, 1, "open");
  insert_accounts(*connection, 1);
  session->claim({.limit = 10, .partial = true});

  db::Connection eyes(database.conninfo() + " user=" + name, "test");
  const auto status = status::read_queue_status(eyes, "mailroom");
  REQUIRE(status.collectors.size() == 1);
  CHECK_FALSE(status.collectors[0].session.readable);
  CHECK(status.collectors[0].session.application.find("mailroom collect " + operator_name() + ":") == 0);
  CHECK(status.open_batches.at(0).session_lives);
  const auto holder =
      std::find_if(status.gap_holders.begin(), status.gap_holders.end(),
                   [&](const status::GapHolder& each) { return each.session.pid == open->backend_pid(); });
  REQUIRE(holder != status.gap_holders.end());
  CHECK(holder->writes_tokens);
  CHECK_FALSE(holder->session.readable);
  const auto findings = health::judge_queue(status, {});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "gap_hidden");
  connection->run(findings[0].fix);
  CHECK(health::judge_queue(status::read_queue_status(eyes, "mailroom"), {}).empty());
}

TEST_CASE("a locked table is reported, not waited for") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto altering = database.connect();
  altering->run("BEGIN");
  altering->run("LOCK TABLE tokens IN ACCESS EXCLUSIVE MODE");
  try {
    status::read_queue_status(*connection, "mailroom");
    FAIL("it went through");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::locked);
    CHECK(error.hint().find("pg_locks") != std::string::npos);
  }
  altering->run("ROLLBACK");
  CHECK(status::read_queue_status(*connection, "mailroom").pending.total() == 0);
}

TEST_CASE("a watch continues over a lost session, and ends quietly") {
  TestDatabase database;
  const TemporaryDirectory directory;
  const auto out = (directory.path() / "out").string();
  const auto err = (directory.path() / "err").string();
  Subprocess watch({mailroom_binary, "status", "--watch", "100ms"},
                   {{"MAILROOM_DATABASE_URL", database.conninfo()}}, out, err);
  const auto looks = [&] { return count(read_file(out), "\n"); };
  REQUIRE(eventually([&] { return looks() >= 2; }));
  CHECK(read_file(err).empty());
  const auto connection = database.connect();
  connection->run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND "
      "application_name LIKE 'mailroom status %'");
  REQUIRE(eventually([&] { return count(read_file(err), " connected again\n") == 1; }));
  CHECK(count(read_file(err), " connection lost ") == 1);
  const auto before = looks();
  CHECK(eventually([&] { return looks() >= before + 2; }));
  watch.signal(SIGINT);
  CHECK(watch.wait() == 0);
  CHECK(count(read_file(err), "\n") == 2);
}

}  // namespace mailroom::test::status_cost_test
