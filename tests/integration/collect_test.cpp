// `mailroom collect` as a process: when it writes lines, and how it handles signals, lost connections and
// closed pipes.

#include <csignal>

#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::collect_test {
namespace {

int fields(const std::string& line) {
  return count(line, ",") + 1;
}

void insert_one_by_one(db::Connection& connection, int count, const std::string& prefix) {
  for (int i = 0; i < count; ++i)
    insert_accounts(connection, 1, prefix + std::to_string(i) + "-");
}

std::int64_t open_batches(db::Connection& connection) {
  return value<std::int64_t>(connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL");
}

}  // namespace

TEST_CASE("five single inserts at limit 3 give a line of three at once and a line of two at the timeout") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1, "before");
  TestCollector collector(database, {}, {{"MAILROOM_BATCH_LIMIT", "3"}, {"MAILROOM_BATCH_TIMEOUT", "3000"}});
  // Tokens that wait at the start are emitted at once; the timeout starts then.
  REQUIRE(eventually([&] { return collector.lines().size() == 1; }));
  insert_one_by_one(*connection, 5, "u");
  REQUIRE(eventually([&] { return collector.lines().size() == 2; }));
  CHECK(fields(collector.lines()[1]) == 3 * 5);
  REQUIRE(eventually([&] { return collector.lines().size() == 3; }));
  CHECK(fields(collector.lines()[2]) == 2 * 5);
  // Both times are the server's: the last batch was claimed about one timeout after the previous one.
  CHECK(value<bool>(*connection,
                    "SELECT max(claimed_at) FILTER (WHERE id = 3) - max(claimed_at) FILTER (WHERE id = 2) "
                    ">= interval '2.5 s' FROM mailroom_batches"));
  CHECK(collector.stop() == 0);
  CHECK(open_batches(*connection) == 0);
}

TEST_CASE("a thousand accounts in one INSERT are emitted by the timeout, all but the last in full batches") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector collector(database, {"--batch-limit", "7", "--batch-timeout", "500ms", "--format", "jsonl"});
  REQUIRE(collector.connected());
  insert_accounts(*connection, 1000);
  REQUIRE(eventually([&] { return emitted_ids(collector.output()).size() == 1000; }));
  CHECK(collector.lines().size() == 143);
  CHECK(collector.stop() == 0);
  CHECK(open_batches(*connection) == 0);
}

TEST_CASE("tokens that wait at the start are emitted at once, whatever the timeout") {
  TestDatabase database;
  insert_accounts(*database.connect(), 2);
  TestCollector collector(database, {"--batch-timeout", "1h"});
  CHECK(eventually([&] { return collector.lines().size() == 1; }));
  CHECK(collector.stop() == 0);
}

TEST_CASE("with --once it drains the queue and stops, with --max-batches earlier, and both acknowledge") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 25);
  TestCollector some(database, {"--max-batches", "2", "--format", "jsonl"});
  CHECK(some.process().wait() == 0);
  CHECK(emitted_ids(some.output()).size() == 20);
  TestCollector rest(database, {"--once", "--format", "jsonl"});
  CHECK(rest.process().wait() == 0);
  CHECK(emitted_ids(rest.output()).size() == 5);
  CHECK(open_batches(*connection) == 0);
  CHECK(value<int>(*connection, "SELECT last_seq FROM jobs") == 25);
}

TEST_CASE("a terminated session is survived and logged, and no token is lost or repeated") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector collector(database, {"--batch-limit", "2", "--batch-timeout", "100ms", "--format", "jsonl"});
  for (int round = 1; round <= 5; ++round) {
    REQUIRE(collector.connected(round));
    insert_one_by_one(*connection, 3, "round" + std::to_string(round) + "-");
    connection->run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()");
  }
  CHECK(eventually([&] { return emitted_ids(collector.output()).size() == 15; }));
  for (const auto& [id, times] : emitted_ids(collector.output()))
    CHECK(times == 1);
  CHECK(eventually([&] { return count(collector.log(), "connection lost") >= 5; }));
  CHECK(collector.stop() == 0);
  CHECK(open_batches(*connection) == 0);
}

TEST_CASE(
    "the log counts the same skipped tokens as the records, whether a claim or the writer skipped them") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 6);
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id IN (1, 2)");
  connection->run("UPDATE tokens SET consumed_at = created_at WHERE id = 3");
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 4");
  TestCollector some(database, {"--once"});
  CHECK(some.process().wait() == 0);
  CHECK(count(some.log(), "emitted batches=1 tokens=2 skipped=4 expired=2 consumed=1 wrong_status=1\n") == 1);
  // The same without a batch.
  insert_accounts(*connection, 3, "late");
  connection->run("UPDATE tokens SET expires_at = 1 WHERE id > 6");
  TestCollector none(database, {"--once"});
  CHECK(none.process().wait() == 0);
  CHECK(count(none.log(), "emitted batches=0 tokens=0 skipped=3 expired=3\n") == 1);
  CHECK(value<int>(*connection,
                   "SELECT sum(skipped_expired + skipped_consumed + skipped_status) FROM mailroom_batches") ==
        7);
}

TEST_CASE("without a notification the backstop poll finds the tokens") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("DROP TRIGGER after_token_inserted ON tokens");
  TestCollector collector(database, {"--batch-limit", "1", "--poll-interval", "50ms"});
  REQUIRE(collector.connected());
  insert_accounts(*connection, 3);
  CHECK(eventually([&] { return collector.lines().size() == 3; }));
  CHECK(collector.stop() == 0);
}

TEST_CASE("a killed collector's batch is taken over by another collector") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector stuck(database, {"--batch-limit", "10000", "--format", "jsonl"});
  REQUIRE(stuck.connected());
  stuck.process().signal(SIGSTOP);
  insert_accounts(*connection, 4);
  stuck.process().signal(SIGCONT);
  REQUIRE(eventually([&] { return value<int>(*connection, "SELECT count(*) FROM mailroom_batches") == 1; }));
  stuck.process().signal(SIGKILL);
  stuck.process().wait();
  TestCollector other(database, {"--batch-timeout", "100ms", "--format", "jsonl"});
  REQUIRE(other.connected());
  // The batch may hold fewer than four: the first collector stops a moment after the signal.
  CHECK(eventually([&] {
    auto all = emitted_ids(stuck.output());
    all.merge(emitted_ids(other.output()));
    return all.size() == 4 && open_batches(*connection) == 0;
  }));
}

TEST_CASE("a closed or full output ends with code 10 and leaves the batch for the next collector") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const std::map<std::string, std::string> environment{{"MAILROOM_DATABASE_URL", database.conninfo()},
                                                       {"MAILROOM_SECRET_KEY", test_key}};
  TemporaryDirectory directory;
  const std::string log = directory.path() / "log";
  const auto run = [&](const std::string& redirection) {
    Subprocess process({"/bin/sh", "-c", std::string("exec ") + mailroom_binary + " collect " + redirection},
                       environment, directory.path() / "out", log);
    return process.wait();
  };
  CHECK(run(">/dev/full") == 10);
  CHECK(run(">&-") == 10);
  CHECK(open_batches(*connection) == 1);
  TestCollector next(database, {"--once", "--format", "jsonl"});
  CHECK(next.process().wait() == 0);
  CHECK(emitted_ids(next.output()).size() == 3);
}

TEST_CASE("a collector without work notices at once that its reader has closed the pipe") {
  TestDatabase database;
  const std::map<std::string, std::string> environment{{"MAILROOM_DATABASE_URL", database.conninfo()},
                                                       {"MAILROOM_SECRET_KEY", test_key}};
  TemporaryDirectory directory;
  // The shell returns the collector's status; the reader exits without reading.
  const auto log = (directory.path() / "log").string();
  Subprocess shell({"/bin/bash", "-c",
                    "set -o pipefail; " + mailroom_binary + " collect | until grep -q connected " + log +
                        "; do sleep 0.01; done"},
                   environment, directory.path() / "out", log);
  CHECK(shell.wait() == 10);
}

TEST_CASE("a line that an earlier collector left unfinished is ended before the first new line") {
  TestDatabase database;
  insert_accounts(*database.connect(), 1);
  TemporaryDirectory directory;
  const auto out = directory.write("out", "1,cut@off");
  Subprocess process({mailroom_binary, "collect", "--once"},
                     {{"MAILROOM_DATABASE_URL", database.conninfo()}, {"MAILROOM_SECRET_KEY", test_key}}, out,
                     directory.path() / "log");
  CHECK(process.wait() == 0);
  CHECK(read_file(out).substr(0, 12) == "1,cut@off\n1,");
}

TEST_CASE("a login with comma and quote is quoted, and one with a line break is skipped and logged by id") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("ALTER TABLE accounts DISABLE TRIGGER before_account_insert");
  connection->run(
      "INSERT INTO accounts (email, login) VALUES ('a@x.example', 'Doe, \"J\"'), ('b@x.example', "
      "E'two\\nlines')");
  TestCollector collector(database, {"--once"});
  CHECK(collector.process().wait() == 0);
  CHECK(collector.lines().size() == 1);
  CHECK(collector.output().find("1,a@x.example,\"Doe, \"\"J\"\"\",") == 0);
  CHECK(count(collector.log(), "token skipped id=2") == 1);
  CHECK(value<int>(*connection, "SELECT skipped_invalid FROM mailroom_batches") == 1);
}

TEST_CASE("SIGHUP reads file and key again, and an invalid file changes nothing") {
  TestDatabase database;
  const auto connection = database.connect();
  TemporaryDirectory directory;
  const auto file = directory.write("mailroom.yaml", "collect:\n  batch_limit: 2\n  batch_timeout: 1h\n");
  TestCollector collector(database, {"--config", file, "--format", "jsonl"});
  REQUIRE(collector.connected());
  directory.write("mailroom.yaml", "collect:\n  batch_limit: many\n");
  collector.process().signal(SIGHUP);
  REQUIRE(eventually(
      [&] { return count(collector.log(), "reload failed, keeping the previous configuration") == 1; }));
  directory.write("mailroom.yaml", "collect:\n  batch_limit: 1\n  batch_timeout: 1h\n");
  collector.process().signal(SIGHUP);
  REQUIRE(eventually([&] { return count(collector.log(), "configuration reloaded") == 1; }));
  insert_accounts(*connection, 1);
  CHECK(eventually([&] { return collector.lines().size() == 1; }));
  CHECK(collector.stop() == 0);
}

}  // namespace mailroom::test::collect_test
