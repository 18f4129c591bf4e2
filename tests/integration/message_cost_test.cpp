// What it costs the server that applications ask for mails, that these wait for their time, and that a queue
// passes what is not its own: counts that are the same on every machine.

#include <limits>

#include "support/catch.hpp"
#include "support/server_counts.hpp"
#include "support/several_queues.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::message_cost_test {
namespace {

const std::string body(2'000, 'x');
const std::string mail_with_text =
    "SELECT mailroom_send(ARRAY['ada@app.example'], subject => 'Your receipt', text => '" + body + "')";
const std::string mail_of_template =
    R"(SELECT mailroom_send(ARRAY['ada@app.example'], 'welcome', '{"name": "Ada"}'))";

std::string bare_row(const std::string& table) {
  return "INSERT INTO " + table +
         " (recipients, subject, text) VALUES (ARRAY['ada@app.example'], 'Your receipt', '" + body + "')";
}

std::string bare_rows(int count) {
  return "INSERT INTO mailroom_messages (recipients, subject, text) "
         "SELECT ARRAY['ada@app.example'], 'Your receipt', 'Thank you.' FROM generate_series(1, " +
         std::to_string(count) + ")";
}

void make_bare_table(db::Connection& connection) {
  connection.run(
      "CREATE TABLE bare (LIKE mailroom_messages INCLUDING DEFAULTS INCLUDING IDENTITY, PRIMARY KEY (id))");
}

/// The plans of one run of `statement` in a session whose plans are made: it has run it more than five times.
std::size_t plans_of(const TestDatabase& database, const std::string& statement) {
  const auto connection = database.connect();
  for (int i = 0; i < 7; ++i)
    connection->run(statement);
  return plans_in(*connection, [&] { connection->run(statement); }).size();
}

/// The least that `cost` grows by in some runs of `count` statements each.
template <typename Number>
Number least_of(db::Connection& connection, const std::string& statement, int count,
                const std::function<Number()>& cost) {
  auto least = std::numeric_limits<Number>::max();
  for (int run = 0; run < 5; ++run) {
    const auto before = cost();
    for (int i = 0; i < count; ++i)
      connection.run(statement);
    least = std::min(least, cost() - before);
  }
  return least;
}

/// The plans of the claim of a batch of `tokens` that are all in the queue, by a session that has claimed
/// before.
std::size_t plans_of_a_claim(const TestDatabase& database,
                             const std::function<void(db::Connection&, int)>& insert, int tokens,
                             const std::string& queue = "mailroom") {
  const auto connection = database.connect();
  const auto session = attach(database, queue);
  claim::ClaimRequest request{.limit = 100, .partial = true};
  const auto claim = [&](int count) {
    insert(*connection, count);
    const auto reply = session->claim(request);
    request.receipt.reset();
    if (!reply.lease) return;
    request.receipt = claim::Receipt{*reply.lease, fetch_due(*session, *reply.lease).counts};
  };
  for (int i = 0; i < 3; ++i)
    claim(tokens);
  const auto pid = value<int>(
      *connection,
      "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = mailroom_lock_class('collector')::oid AND "
      "database = (SELECT oid FROM pg_database WHERE datname = current_database())");
  const ServerLog log;
  claim(tokens);
  return with(log.entries_of(pid), " plan:\n").size();
}

void insert_messages(db::Connection& connection, int count) {
  connection.run(bare_rows(count));
}

}  // namespace

TEST_CASE("a mail that an application asks for takes four statements on the server") {
  TestDatabase database;
  log_everything(database);
  CHECK(plans_of(database, mail_with_text) == 4);
  CHECK(plans_of(database, mail_of_template) == 4);
}

TEST_CASE("a statement of many messages runs none for each of them") {
  TestDatabase database;
  log_everything(database);
  CHECK(plans_of(database, bare_rows(100)) == plans_of(database, bare_rows(10)));
}

TEST_CASE("a mail that an application asks for costs the server a few plain inserts of its row") {
  TestDatabase database;
  const auto connection = database.connect();
  keep_autovacuum_away(*connection);
  make_bare_table(*connection);
  // As while a consumer polls.
  const auto consumer = database.connect();
  consumer->run("SELECT mailroom_stay_polling()");
  const auto pid = value<int>(*connection, "SELECT pg_backend_pid()");
  const std::function<double()> cpu = [&] { return cpu_seconds(pid); };
  const auto mail = least_of(*connection, mail_with_text, 200, cpu);
  const auto row = least_of(*connection, bare_row("bare"), 200, cpu);
  CAPTURE(mail, row);
  CHECK(mail / row <= 5);
  const std::function<std::int64_t()> wal = [&] { return wal_bytes(*connection); };
  const auto bytes_of_mail = least_of(*connection, mail_with_text, 50, wal);
  const auto bytes_of_row = least_of(*connection, bare_row("bare"), 50, wal);
  CAPTURE(bytes_of_mail, bytes_of_row);
  CHECK(bytes_of_mail <= bytes_of_row * 4);
}

TEST_CASE("messages whose time has come get their tokens by as many statements, however many they are") {
  TestDatabase database;
  log_everything(database);
  const auto connection = database.connect();
  const auto release = [&](int count) {
    connection->run(
        "INSERT INTO mailroom_messages (recipients, template, send_after) "
        "SELECT ARRAY['ada@app.example'], 'welcome', now() + interval '1 hour' FROM generate_series(1, $1::int)",
        count);
    connection->run("UPDATE mailroom_schedule SET send_after = now() - interval '1 second'");
    return plans_in(
               *connection,
               [&] {
                 CHECK(connection->run("SELECT released FROM mailroom_release(1000)").value<int>() == count);
               })
        .size();
  };
  release(1);
  const auto few = release(10);
  CHECK(release(100) == few);
}

TEST_CASE("a claim of messages runs no statement for each of them") {
  TestDatabase database;
  log_everything(database);
  const auto few = plans_of_a_claim(database, insert_messages, 5);
  CHECK(few > 0);
  CHECK(plans_of_a_claim(database, insert_messages, 50) == few);
}

TEST_CASE("a claim touches no message that waits for its time") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run(
      "INSERT INTO mailroom_messages (recipients, template, send_after) "
      "SELECT ARRAY['ada@app.example'], 'welcome', now() + interval '1 day' FROM generate_series(1, 1000)");
  connection->run("ANALYZE");
  insert_accounts(*connection, 20);
  connection->run("SELECT pg_stat_reset()");
  auto session = attach(database);
  CHECK(drain(*session, 10).size() == 20);
  CHECK(session->claim({.limit = 10, .partial = true, .routine = true}).lease == std::nullopt);
  session.reset();
  const auto rows_read = [&](const std::string& table) {
    return connection
        ->run(
            "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relname = $1",
            table)
        .value<std::int64_t>();
  };
  REQUIRE(eventually([&] { return rows_read("tokens") > 0; }));
  CHECK(rows_read("mailroom_schedule") <= 4);
  CHECK(rows_read("mailroom_messages") == 0);
}

TEST_CASE("a claim that passes tokens of other queues runs no statement for each of them") {
  const auto plans = [](int others) {
    TestDatabase database;
    const auto connection = database.connect();
    make_queue(*connection, "recovery", recoveries_only);
    log_everything(database);
    return plans_of_a_claim(
        database,
        [](auto& each, int count) { insert_accounts(each, count, "user" + std::to_string(xid(each))); },
        others, "recovery");
  };
  CHECK(plans(1'000) > 0);
  // The window of a claim grows fourfold.
  CHECK(plans(4'000) <= plans(1'000) + 1);
}

TEST_CASE("the usual claim of a queue of some actions takes as few statements as that of one of all") {
  const auto plans = [](const std::string& definition) {
    TestDatabase database;
    const auto connection = database.connect();
    make_queue(*connection, "some", definition);
    log_everything(database);
    return plans_of_a_claim(
        database,
        [](auto& each, int count) { insert_accounts(each, count, "user" + std::to_string(xid(each))); }, 10,
        "some");
  };
  // mailroom_filtered_range() is one more, for its look at the tokens.
  CHECK(plans(activations_only) == plans("{}") + 1);
}

}  // namespace mailroom::test::message_cost_test
