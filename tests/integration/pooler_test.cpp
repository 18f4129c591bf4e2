// Every command behind a PgBouncer in each of its modes: it works, or is refused before it leaves anything
// behind in a shared server process.

#include <map>

#include "base/json.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/test_collector.hpp"
#include "support/test_pooler.hpp"

namespace mailroom::test::pooler_test {
namespace {

using Arguments = std::vector<std::string>;

FinishedRun run_behind(const std::string& conninfo, const Arguments& words) {
  Arguments command{mailroom_binary};
  command.insert(command.end(), words.begin(), words.end());
  return run_to_end(command, {{"MAILROOM_DATABASE_URL", conninfo}, {"MAILROOM_SECRET_KEY", test_key}});
}

std::string joined(const Arguments& words) {
  std::string text;
  for (const auto& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A token that is emitted and not consumed, as its receiver has it.
std::string emit_token(const TestDatabase& database, db::Connection& connection) {
  insert_accounts(connection, 3);
  const auto run = run_behind(database.conninfo(), {"-q", "collect", "--once", "--format", "jsonl"});
  REQUIRE(run.status == 0);
  return emitted_tokens(run.output).at(0).at("token").get<std::string>();
}

/// A command, and its exit status in session, transaction and statement mode.
struct Row {
  Arguments words;
  int session, transaction, statement;
};

std::vector<Row> every_command(const std::string& token) {
  return {{{"config", "check"}, 0, 0, 0},
          {{"migrate", "status"}, 0, 0, 0},
          {{"migrate", "verify"}, 0, 0, 3},
          {{"migrate"}, 0, 3, 3},
          {{"migrate", "up", "--dry-run"}, 0, 3, 3},
          {{"migrate", "baseline", "8"}, 0, 3, 3},
          {{"migrate", "force", "5", "--yes"}, 5, 3, 3},
          {{"verify", token}, 0, 0, 0},
          {{"status"}, 0, 0, 3},
          {{"audit"}, 0, 0, 3},
          {{"audit", "user1"}, 0, 0, 3},
          {{"audit", token}, 0, 0, 3},
          {{"tail"}, 0, 3, 3},
          {{"tail", "-f", "--count", "1"}, 0, 3, 3},
          {{"doctor"}, 0, 8, 8},
          {{"suspend", "user1", "--yes"}, 0, 0, 3},
          {{"suspend", "user1", "--undo", "--yes"}, 0, 0, 3},
          {{"rewind-cursor", "--to-start", "--yes"}, 0, 0, 3},
          {{"prune", "--yes"}, 0, 3, 3},
          {{"simulate", "--accounts", "2"}, 0, 3, 3},
          {{"simulate", "--clean-up"}, 0, 3, 3},
          {{"collect", "--once"}, 0, 3, 3}};
}

/// Makes the pooler open three server processes.
void occupy_three(const TestPooler& pooler) {
  std::vector<std::unique_ptr<db::Connection>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::make_unique<db::Connection>(pooler.conninfo(), "application"));
    others.back()->run("BEGIN");
  }
}

/// What the pooler's next client would find: settings, prepared statements and locks of others.
std::string left_behind(db::Connection& connection, const TestPooler& pooler) {
  db::Connection application(pooler.conninfo(), "application");
  const auto settings = value<std::string>(
      application,
      "SELECT current_setting('default_transaction_read_only') || current_setting('enable_seqscan') || "
      "(SELECT count(*) FROM pg_prepared_statements)");
  return settings + " and locks: " + std::to_string(locks(connection, "locktype = 'advisory'"));
}

}  // namespace

TEST_CASE("behind a pooler in session mode every command works") {
  TestDatabase database;
  const auto connection = database.connect();
  const TestPooler pooler(database, "session");
  for (const auto& row : every_command(emit_token(database, *connection))) {
    const auto run = run_behind(pooler.conninfo(), row.words);
    INFO(joined(row.words) << ": " << run.errors);
    CHECK(run.status == row.session);
  }
  // The pooler cleans a server process when its client has left, or before it has the next one.
  CHECK(eventually([&] { return left_behind(*connection, pooler) == "offon0 and locks: 0"; }));
}

TEST_CASE("behind a pooler in transaction mode a command works or is refused, and leaves nothing behind") {
  const std::string choice = GENERATE("", "server_round_robin = 1\n");
  INFO("settings: " << choice);
  TestDatabase database;
  const auto connection = database.connect();
  const TestPooler pooler(database, "transaction", choice);
  const auto token = emit_token(database, *connection);
  occupy_three(pooler);
  for (const auto& row : every_command(token)) {
    const auto run = run_behind(pooler.conninfo(), row.words);
    INFO(joined(row.words) << ": " << run.errors << run.output);
    CHECK(run.status == row.transaction);
    if (row.transaction == 3) {
      CHECK(has(run.errors, "error: the connection goes through a pooler in transaction mode"));
      CHECK(has(run.errors, "hint: connect to the server directly, or set pool_mode = session"));
      CHECK(has(run.errors, "MAILROOM_DATABASE_URL='host=" +
                                value<std::string>(*connection, "SHOW unix_socket_directories")));
    }
  }
  for (int i = 0; i < 3; ++i)
    CHECK(left_behind(*connection, pooler) == "offon0 and locks: 0");
}

TEST_CASE("behind a pooler in statement mode a command says so, with the pooler's message if there is one") {
  TestDatabase database;
  const auto connection = database.connect();
  const TestPooler pooler(database, "statement");
  for (const auto& row : every_command(emit_token(database, *connection))) {
    const auto run = run_behind(pooler.conninfo(), row.words);
    INFO(joined(row.words) << ": " << run.errors << run.output);
    CHECK(run.status == row.statement);
    CHECK_FALSE(has(run.errors, "the session has ended"));
    if (row.statement != 3) continue;
    CHECK(has(run.errors, "a pooler in statement mode"));
    const bool asked_for_a_session = row.transaction == 3;
    CHECK(asked_for_a_session !=
          has(run.errors, "error: transaction blocks not allowed in statement pooling mode"));
  }
  CHECK(left_behind(*connection, pooler) == "offon0 and locks: 0");
}

TEST_CASE("the doctor names the pooler's mode, and its fix leads to the server") {
  TestDatabase database;
  for (const std::string mode : {"transaction", "statement"}) {
    const TestPooler pooler(database, mode);
    const auto run = run_behind(pooler.conninfo(), {"doctor", "-o", "json"});
    INFO(run.output);
    CHECK(has(run.output, "a pooler in " + mode + " mode"));
    const auto start = run.output.find("MAILROOM_DATABASE_URL='") + 23;
    const auto direct = run.output.substr(start, run.output.find('\'', start) - start);
    CHECK(run_behind(direct, {"-q", "collect", "--once"}).status == 0);
  }
}

TEST_CASE("a collector behind a pooler in session mode starts even if the pool has one server process") {
  TestDatabase database;
  const auto connection = database.connect();
  const TestPooler pooler(database, "session", "default_pool_size = 1\n");
  insert_accounts(*connection, 3);
  TestCollector collector(pooler.conninfo(), {"--format", "jsonl"});
  CHECK(eventually([&] { return emitted_ids(collector.output()).size() == 3; }));
  const auto collectors = [&] {
    return locks(*connection, "classid = mailroom_lock_class('collector')::oid");
  };
  CHECK(collectors() == 1);
  CHECK(collector.stop() == 0);
  CHECK(eventually([&] { return collectors() == 0; }));
}

TEST_CASE("a search_path that the pooler drops is told of, and one that it lets through is kept") {
  TestDatabase database(TestDatabase::Schema::none);
  database.connect()->run("CREATE SCHEMA app; CREATE EXTENSION pgcrypto");
  const TestPooler pooler(database, "session", "ignore_startup_parameters = options\n");
  const auto options = " options=-csearch_path=app,public";
  for (const auto& words : {Arguments{"migrate"}, Arguments{"status"}, Arguments{"collect", "--once"}}) {
    const auto run = run_behind(pooler.conninfo() + options, words);
    CHECK(run.status == 3);
    CHECK(has(run.errors, "options, app,public, did not arrive: the session has \"$user\", public"));
  }
  CHECK(
      run_behind(pooler.conninfo() + " options='-csearch_path=\"$user\",\\\\ public'", {"migrate", "status"})
          .status == 5);
  CHECK(run_behind(database.conninfo() + options, {"migrate"}).status == 0);
}

}  // namespace mailroom::test::pooler_test
