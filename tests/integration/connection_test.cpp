// What a session does when the server or an administrator ends it.

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/actor.hpp"
#include "db/errors.hpp"
#include "support/catch.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::connection_test {
namespace {

/// A session whose backend has been terminated without its knowledge.
std::unique_ptr<db::Connection> ended_session(const TestDatabase& database) {
  auto connection = database.connect();
  connection->prepare("one", "SELECT $1::int");
  connection->run_prepared("one", 1);
  connection->prepare("other", "SELECT $1::int + 1");
  connection->listen("nothing");
  database.connect()->run("SELECT pg_terminate_backend($1, 10000)", connection->backend_pid());
  return connection;
}

}  // namespace

TEST_CASE("every call on a terminated session throws, and none opens a new session silently") {
  TestDatabase database;
  const auto connection = ended_session(database);
  const int pid = connection->backend_pid();
  CHECK_THROWS_AS(connection->run("SELECT 1"), db::ConnectionLost);
  CHECK_THROWS_AS(connection->run("SELECT $1::int", 1), db::ConnectionLost);
  CHECK_THROWS_AS(connection->run_prepared("one", 1), db::ConnectionLost);
  CHECK_THROWS_AS(connection->transact([](pqxx::work& work) { db::Connection::execute(work, "SELECT 1"); }),
                  db::ConnectionLost);
  CHECK_THROWS_AS(connection->take_notifications(), db::ConnectionLost);
  CHECK(value<int>(*database.connect(),
                   "SELECT count(*) FROM pg_stat_activity WHERE pid = " + std::to_string(pid)) == 0);
}

TEST_CASE("a prepared statement can be the first to notice that its session was terminated") {
  TestDatabase database;
  CHECK_THROWS_AS(ended_session(database)->run_prepared("one", 1), db::ConnectionLost);
  CHECK_THROWS_AS(ended_session(database)->run_prepared("other", 1), db::ConnectionLost);
}

TEST_CASE(
    "a statement is prepared when it is first run, so that one that this role may not run disturbs no other") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->prepare("unknown", "SELECT no_such_function()");
  connection->prepare("one", "SELECT $1::int");
  const auto prepared = [&] {
    return value<std::string>(*connection,
                              "SELECT coalesce(string_agg(name, ' '), '') FROM pg_prepared_statements");
  };
  CHECK(prepared().empty());
  CHECK(connection->run_prepared("one", 1)[0][0].as<int>() == 1);
  connection->prepare("one", "SELECT $1::int");
  CHECK(connection->run_prepared("one", 2)[0][0].as<int>() == 2);
  CHECK(prepared() == "one");
  CHECK_THROWS_AS(connection->run_prepared("unknown"), db::DatabaseError);
  CHECK_THROWS_AS(connection->prepare("one", "SELECT 1"), std::logic_error);
  CHECK(prepared() == "one");
}

TEST_CASE("a table that was made anew under a prepared statement ends the session, and a new one works") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->prepare("jobs", "SELECT * FROM jobs");
  connection->run_prepared("jobs");
  database.connect()->run("ALTER TABLE jobs ALTER last_seq TYPE numeric");
  CHECK_THROWS_AS(connection->run_prepared("jobs"), db::ConnectionLost);
}

TEST_CASE("the check for notifications can be the first to notice that its session was terminated") {
  TestDatabase database;
  const auto connection = ended_session(database);
  bool noticed = false;
  for (int i = 0; i < 1000 && !noticed; ++i) {
    try {
      connection->take_notifications();
    } catch (const db::ConnectionLost&) {
      noticed = true;
    }
  }
  CHECK(noticed);
}

TEST_CASE("the error of a terminated session is about the session") {
  TestDatabase database;
  const auto connection = ended_session(database);
  std::string reason;
  const auto note_reason = [&](const auto& call) {
    try {
      call();
    } catch (const db::ConnectionLost& error) {
      reason = error.what();
    }
  };
  SECTION("in the check for notifications") {
    while (reason.empty())
      note_reason([&] { connection->take_notifications(); });
  }
  SECTION("in a statement") {
    note_reason([&] { connection->run("SELECT 1"); });
  }
  CAPTURE(reason);
  CHECK_FALSE(reason.empty());
  CHECK(reason.find("Connection to database failed") == std::string::npos);
  CHECK(reason.find("encoding") == std::string::npos);
}

TEST_CASE("a failed statement keeps PostgreSQL's message, hint and SQLSTATE, and the session stays usable") {
  TestDatabase database;
  const auto connection = database.connect();
  try {
    connection->run("SELECT colum FROM (SELECT 1 AS column1) t");
    FAIL("it went through");
  } catch (const db::DatabaseError& error) {
    CHECK(std::string(error.what()) == "column \"colum\" does not exist");
    CHECK(error.sqlstate() == "42703");
    CHECK(error.code() == ExitCode::schema);
  }
  CHECK(value<int>(*connection, "SELECT 1") == 1);
}

TEST_CASE("a deadlock and a serialization failure are errors of a statement that a retry may fix") {
  TestDatabase database;
  const auto first = database.connect();
  const auto second = database.connect();
  const auto sqlstate_of = [](db::Connection& connection, const std::string& sql) {
    try {
      connection.run(sql);
    } catch (const db::DatabaseError& error) {
      CHECK(db::is_transient(error));
      return error.sqlstate();
    }
    return std::string("none");
  };
  // The second session checks for deadlocks only after a minute; the first one checks at once and is
  // cancelled.
  first->run("SET deadlock_timeout = '10ms'");
  second->run("SET deadlock_timeout = '1min'");
  first->run("SELECT pg_advisory_lock(1)");
  second->run("SELECT pg_advisory_lock(2)");
  std::thread waiting([&] { second->run("SELECT pg_advisory_lock(1)"); });
  CHECK(eventually([&] { return locks(*database.connect(), "NOT granted") == 1; }));
  CHECK(sqlstate_of(*first, "SELECT pg_advisory_lock(2)") == "40P01");
  first->run("SELECT pg_advisory_unlock_all()");
  waiting.join();

  insert_accounts(*first, 1);
  first->run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  first->run("SELECT count(*) FROM accounts");
  second->run("UPDATE accounts SET email = 'other@mail.example'");
  CHECK(sqlstate_of(*first, "UPDATE accounts SET email = 'mine@mail.example'") == "40001");
  first->run("ROLLBACK");
  CHECK(value<int>(*first, "SELECT 1") == 1);
}

TEST_CASE("a session's name at the server gives its purpose, host and process id") {
  TestDatabase database;
  const auto connection = database.connect("mailroom collect");
  const auto name = value<std::string>(*connection, "SELECT current_setting('application_name')");
  CHECK(name.find("mailroom collect " + operator_name() + ":") == 0);
  CHECK(name.size() <= 63);
  CHECK(name.substr(name.rfind(':') + 1) == std::to_string(getpid()));
}

TEST_CASE("a row is read by the names of its columns, and a name that it lacks is told") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto rows = connection->run(
      "SELECT i AS id, 'x' || i AS word, NULL::int AS nothing, i > 1 AS is_late, i * 1000 AS at "
      "FROM generate_series(1, 3) i ORDER BY i");
  std::string words;
  for (const auto& row : rows) {
    words += row.text("word");
    CHECK(row.number("at") == row.number("id") * 1000);
    CHECK(row.moment<Milliseconds>("at") == Moment(std::chrono::seconds(row.number("id"))));
    CHECK(row.flag("is_late") == (row.number<int>("id") > 1));
    CHECK_FALSE(row.optional<int>("nothing"));
    CHECK(row.text("nothing").empty());
    CHECK_THROWS(row.number("nothing"));
    CHECK(row.has_column("id"));
    CHECK_FALSE(row.has_column("identity"));
    try {
      row.is_null("identity");
      FAIL("there is no such column");
    } catch (const std::logic_error& error) {
      CHECK(std::string(error.what()).find("\"identity\"") != std::string::npos);
    }
  }
  CHECK(words == "x1x2x3");
  CHECK(connection->run("SELECT generate_series(3, 5)").values<int>() == std::vector{3, 4, 5});
  CHECK(connection->run("SELECT NULL").text().empty());
  CHECK_THROWS_AS(connection->run("SELECT 1, 2").value<int>(), std::logic_error);
  CHECK_THROWS_AS(connection->run("SELECT generate_series(1, 2)").value<int>(), std::logic_error);
  CHECK_THROWS_AS(connection->run("SELECT 1 WHERE false").value<int>(), std::logic_error);
}

TEST_CASE("optional values are bound as values or as NULL") {
  TestDatabase database;
  const auto row = database.connect()->run("SELECT $1::bigint, $2::bigint, $3::text, $4::text",
                                           std::optional<std::int64_t>(5), std::optional<std::int64_t>(),
                                           std::optional<std::string>("x"), std::optional<std::string>())[0];
  CHECK(row[0].as<int>() == 5);
  CHECK(row[1].is_null());
  CHECK(row[2].as<std::string>() == "x");
  CHECK(row[3].is_null());
}

}  // namespace mailroom::test::connection_test
