// `mailroom tail` as a process, beside sessions that write and a collector: every event once.

#include <csignal>
#include <fcntl.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.hpp"
#include "support/build_paths.hpp"
#include "support/busy_writers.hpp"
#include "support/catch.hpp"
#include "support/test_collector.hpp"
#include "support/write_load.hpp"

namespace mailroom::test::tail_test {
namespace {

/// How often each event is in the output, by its short text: `created 7`.
using Counted = std::map<std::string, int>;

class TestTail {
 public:
  /// Writes to `stdout_path`, or else to a file that output() reads.
  TestTail(const TestDatabase& database, const std::vector<std::string>& options,
           const std::string& stdout_path = {})
      : process_(command(options), {{"MAILROOM_DATABASE_URL", database.conninfo()}},
                 stdout_path.empty() ? (directory_.path() / "stdout").string() : stdout_path,
                 directory_.path() / "stderr") {}

  Counted counted() const {
    Counted events;
    std::istringstream text(output());
    for (std::string line; std::getline(text, line) && !text.eof();)
      ++events[short_text(parse_json(line))];
    return events;
  }
  std::string output() const { return read_file(directory_.path() / "stdout"); }
  std::string log() const { return read_file(directory_.path() / "stderr"); }
  Subprocess& process() { return process_; }
  int stop() {
    process_.signal(SIGTERM);
    return process_.wait();
  }

 private:
  static std::vector<std::string> command(const std::vector<std::string>& options) {
    std::vector<std::string> words{mailroom_binary, "tail"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }
  /// Operations have no number in the output, so they are identified by their account, and counted.
  static std::string short_text(const nlohmann::json& event) {
    const auto word = event.at("event").get<std::string>();
    for (const auto* key : {"token", "batch", "account"}) {
      if (event.contains(key)) return word + " " + std::to_string(event.at(key).get<std::int64_t>());
    }
    return word;
  }

  TemporaryDirectory directory_;
  Subprocess process_;
};

/// The expected events, from the tables.
Counted expected(db::Connection& connection) {
  Counted events;
  const auto rows = connection.run(
      "SELECT 'created ' || id FROM tokens "
      "UNION ALL SELECT 'consumed ' || id FROM tokens WHERE consumed_at IS NOT NULL "
      "UNION ALL SELECT CASE WHEN emitted = 0 AND skipped_expired + skipped_consumed + skipped_status + "
      "skipped_invalid > 0 THEN 'skipped ' ELSE 'emitted ' END || id FROM mailroom_batches "
      "WHERE emitted_at IS NOT NULL AND (NOT isempty(ids) OR "
      "emitted + skipped_expired + skipped_consumed + skipped_status + skipped_invalid > 0) "
      "UNION ALL SELECT CASE kind WHEN 'suspend' THEN 'suspended ' WHEN 'restore' THEN 'restored ' END || "
      "account "
      "FROM mailroom_operations WHERE account IS NOT NULL "
      "UNION ALL SELECT 'rewound' FROM mailroom_operations WHERE kind = 'rewind'");
  for (const auto& row : rows)
    ++events[row[0].c_str()];
  return events;
}

/// The events of `in` that `from` lacks or has fewer times.
std::vector<std::string> missing(const Counted& from, const Counted& in) {
  std::vector<std::string> all;
  for (const auto& [event, times] : in) {
    const auto found = from.find(event);
    if (found == from.end() || found->second < times) all.push_back(event);
  }
  return all;
}

void check_everything_once(const TestTail& tail, db::Connection& connection) {
  const auto wanted = expected(connection);
  CHECK(eventually([&] { return missing(tail.counted(), wanted).empty(); }));
  CHECK(missing(tail.counted(), wanted) == std::vector<std::string>{});
  // No batch was taken over, so the tail must show no other events.
  CHECK(missing(wanted, tail.counted()) == std::vector<std::string>{});
}

std::int64_t sessions_of_tail(db::Connection& connection, const std::string& condition = "true") {
  return value<std::int64_t>(connection,
                             "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                             "AND application_name LIKE 'mailroom tail %' AND " +
                                 condition);
}

}  // namespace

TEST_CASE("beside busy writers and a collector, past and new events are shown once each") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector collector(database, {"--batch-limit", "5", "--batch-timeout", "50ms"});
  REQUIRE(collector.connected());
  BusyWriters writers(database, 8, 1);
  REQUIRE(eventually([&] { return value<int>(*connection, "SELECT count(*) FROM tokens") > 30; }));
  // The tail starts while transactions are open.
  TestTail tail(database, {"-f", "--from-id", "1", "-o", "json"});
  TestTail second(database, {"-f", "-n", "1000000", "-o", "json"});
  for (int i = 0; i < 4; ++i) {
    await_tokens(*connection, 80);
    connection->run("SELECT mailroom_rewind('mailroom', greatest(last_seq - 10, 0), 1000, '{}') FROM jobs");
  }
  writers.finish();
  CHECK(value<int>(*connection, "SELECT count(*) FROM tokens") > 300);
  CHECK(eventually([&] {
    return value<int>(*connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL") == 0;
  }));
  CHECK(collector.stop() == 0);
  check_everything_once(tail, *connection);
  check_everything_once(second, *connection);
  CHECK(tail.stop() == 0);
  CHECK(tail.log().empty());
}

TEST_CASE("a tail whose session is terminated repeatedly resumes, and shows every event once") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector collector(database, {"--batch-limit", "5", "--batch-timeout", "50ms"});
  REQUIRE(collector.connected());
  TestTail tail(database, {"-f", "--from-id", "1", "-o", "json"});
  BusyWriters writers(database, 6, 2);
  for (int i = 0; i < 6; ++i) {
    const auto shown = count(tail.output(), "\n");
    REQUIRE(eventually([&] { return sessions_of_tail(*connection, "state = 'idle'") == 1; }));
    REQUIRE(eventually([&] { return count(tail.output(), "\n") > shown + 10; }));
    connection->run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name LIKE 'mailroom tail %'");
  }
  writers.finish();
  CHECK(collector.stop() == 0);
  check_everything_once(tail, *connection);
  CHECK(count(tail.log(), "connection lost") >= 5);
  CHECK(count(tail.log(), "connected again") >= 5);
  CHECK(tail.stop() == 0);
}

TEST_CASE("a tail whose reader does not read has no transaction open and can be stopped") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5000);
  TemporaryDirectory directory;
  const std::string pipe = directory.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  // Open for reading, but never read.
  const int reader = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(reader >= 0);
  // More than the pipe holds.
  TestTail tail(database, {"-f", "-n", "5000"}, pipe);
  CHECK(eventually([&] {
    return sessions_of_tail(*connection, "state = 'idle' AND state_change < now() - interval '500 ms'") == 1;
  }));
  CHECK(sessions_of_tail(*connection, "(xact_start IS NOT NULL OR backend_xid IS NOT NULL)") == 0);
  CHECK(tail.stop() == 0);
  close(reader);
}

TEST_CASE("a tail ends quietly when its reader or its terminal is gone, or when it is stopped") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    TestTail tail(database, {"-f"});
    REQUIRE(eventually([&] { return count(tail.output(), "\n") == 3; }));
    tail.process().signal(number);
    CHECK(tail.process().wait() == 0);
    CHECK(tail.log().empty());
  }
  TemporaryDirectory directory;
  Subprocess process(
      {"/bin/sh", "-c", std::string("{ ") + mailroom_binary + " tail -f; echo $? >&2; } | head -n 2"},
      {{"MAILROOM_DATABASE_URL", database.conninfo()}}, directory.path() / "stdout",
      directory.path() / "stderr");
  CHECK(process.wait() == 0);
  CHECK(read_file(directory.path() / "stderr") == "0\n");
}

TEST_CASE("without notifications a tail polls on its own, and --count ends a tail") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("DROP TRIGGER after_token_inserted ON tokens");
  TestTail tail(database, {"-f", "--count", "3"});
  REQUIRE(eventually([&] { return sessions_of_tail(*connection, "state = 'idle'") == 1; }));
  insert_accounts(*connection, 1);
  CHECK(eventually([&] { return count(tail.output(), "\n") == 1; }));
  insert_accounts(*connection, 5, "more");
  CHECK(tail.process().wait() == 0);
  CHECK(count(tail.output(), "\n") == 3);
}

}  // namespace mailroom::test::tail_test
