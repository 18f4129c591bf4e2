// What commands cost a server with many tokens: rows read and statements planned, which are the same on every
// machine.

#include "queue/preconditions.hpp"
#include "reconcile/reconciliation.hpp"
#include "schema/migration_plan.hpp"
#include "schema/statements.hpp"
#include "schema/verification.hpp"
#include "status/unmailed.hpp"
#include "support/catch.hpp"
#include "support/test_feed.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::command_cost_test {
namespace {

constexpr int tokens = 12'000;

/// Flushes the statistics of `connection` now instead of after it has been idle.
void flush_counts(db::Connection& connection) {
  connection.run("SELECT pg_stat_force_next_flush()");
}

std::int64_t rows_read(db::Connection& connection, const std::string& table) {
  return connection
      .run(
          "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE "
          "relname = $1",
          table)[0][0]
      .as<std::int64_t>();
}

/// With the entries of indexes, also where no row was read for them.
std::int64_t entries_read(db::Connection& connection, const std::string& table) {
  return connection
      .run(
          "SELECT coalesce(t.seq_tup_read, 0) + coalesce(sum(i.idx_tup_read), 0)::bigint FROM pg_stat_user_tables t "
          "LEFT JOIN pg_stat_user_indexes i USING (relid) WHERE t.relname = $1 GROUP BY t.seq_tup_read",
          table)
      .value<std::int64_t>();
}

}  // namespace

TEST_CASE("a history of many events scans the rows a few times, not once per few events") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, tokens);
  connection->run("UPDATE tokens SET consumed_at = created_at + 60 WHERE id % 3 = 0");
  connection->run("VACUUM ANALYZE");
  flush_counts(*connection);
  connection->run("SELECT pg_stat_reset()");

  TestFeed feed(database, TestFeed::everything());
  const auto told = feed.take();
  CHECK(told.size() == tokens + tokens / 3);
  CHECK(std::count_if(told.begin(), told.end(),
                      [](const auto& event) { return event.account()->email.empty(); }) == 0);
  flush_counts(feed.session());
  CHECK(rows_read(*connection, "tokens") < 5 * tokens);
  CHECK(rows_read(*connection, "accounts") < 5 * tokens);
}

TEST_CASE("reconcile reads each token twice, and looks up only the people that it lists") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, tokens);
  connection->run("UPDATE tokens SET expires_at = created_at WHERE id % 1000 = 0");
  const auto session = attach(database);
  drain(*session, 1000);
  connection->run("VACUUM ANALYZE");
  const auto read = [&](const selection::Selection* listed) {
    flush_counts(*connection);
    connection->run("SELECT pg_stat_reset()");
    std::int64_t people = 0;
    reconcile::reconcile(*connection, {.queues = {"mailroom"},
                                       .listed = listed,
                                       .on_people = [&](const auto& each) { people += std::ssize(each); }});
    flush_counts(*connection);
    return people;
  };
  read(nullptr);
  CHECK(rows_read(*connection, "tokens") <= 2 * tokens + 100);
  CHECK(rows_read(*connection, "accounts") == 0);
  const selection::Selection skipped{.outcomes = {fate::Outcome::skipped}};
  CHECK(read(&skipped) == tokens / 1000);
  CHECK(rows_read(*connection, "tokens") <= 3 * tokens + 100);
  CHECK(rows_read(*connection, "accounts") < 100);
}

TEST_CASE("what has no token is looked for among the newest rows, without reading the others") {
  constexpr int many = 4 * tokens;
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, many);
  connection->run(
      "INSERT INTO mailroom_messages (recipients, subject, text) SELECT ARRAY['ada@mail.example'], 's', 't' FROM "
      "generate_series(1, $1::int)",
      many);
  connection->run("INSERT INTO mailroom_queues (name, actions) VALUES ('mailroom', '{password_recovery}')");
  connection->run("VACUUM ANALYZE");
  flush_counts(*connection);
  connection->run("SELECT pg_stat_reset()");

  connection->transact([](pqxx::transaction_base& transaction) {
    CHECK(status::count_accounts_without_token(transaction) == 0);
    CHECK(status::read_newest_lost_messages(transaction).messages == 0);
    CHECK(status::read_untaken_actions(transaction).size() == 2);
  });
  flush_counts(*connection);
  for (const auto* table : {"tokens", "accounts", "mailroom_messages"}) {
    INFO(table);
    CHECK(entries_read(*connection, table) < many);
  }
}

TEST_CASE("what a consumer could not emit is looked for in the first tokens that wait") {
  constexpr int many = 4 * tokens;
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, many);
  connection->run("UPDATE tokens SET created_at = 1, expires_at = 5 WHERE id % 2 = 0");
  connection->run("VACUUM ANALYZE");
  flush_counts(*connection);
  connection->run("SELECT pg_stat_reset()");

  queue::require_signed_tokens(*connection, "mailroom");
  flush_counts(*connection);
  CHECK(entries_read(*connection, "tokens") < many / 2);
}

TEST_CASE("events of a few tokens among many read little more than these tokens") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, tokens);
  connection->run("UPDATE tokens SET created_at = created_at - 400");
  connection->run("VACUUM ANALYZE");
  TestFeed feed(database);
  flush_counts(feed.session());
  flush_counts(*connection);
  connection->run("SELECT pg_stat_reset()");

  connection->run(
      "UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id IN (5, 7, 3000, 11000)");
  CHECK(feed.poll() == Shown{"consumed 5", "consumed 7", "consumed 3000", "consumed 11000"});
  flush_counts(feed.session());
  // With the last range of the index on created_at, which holds the changed rows.
  CHECK(rows_read(*connection, "tokens") < tokens / 5);
  CHECK(rows_read(*connection, "accounts") < 100);
}

TEST_CASE("the last mails and the new ones are found among many without reading all") {
  constexpr int mails = 60'000;
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 20);
  connection->run(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch, last_at) SELECT 'mailroom', g, 'rejected', g, "
      "now() - ($1::int - g) * interval '30 s' FROM generate_series(1, $1::int) g",
      mails);
  connection->run("VACUUM ANALYZE");
  flush_counts(*connection);
  connection->run("SELECT pg_stat_reset()");
  feed::HistoryRequest last;
  last.last = 10;
  TestFeed feed(database, last, {.action = {}, .accounts = {}, .states = {"delivery"}});
  CHECK(feed.take().size() == 10);
  connection->run("UPDATE mailroom_deliveries SET last_at = clock_timestamp() WHERE token = 5");
  CHECK(feed.poll() == Shown{"delivery rejected 5"});
  flush_counts(feed.session());
  CHECK(rows_read(*connection, "mailroom_deliveries") < mails / 4);
}

TEST_CASE("the last mails of an account are found by its tokens") {
  constexpr int mails = 60'000;
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 20);
  connection->run(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch) SELECT 'mailroom', g, 'rejected', g "
      "FROM generate_series(1, $1::int) g",
      mails);
  connection->run("VACUUM ANALYZE");
  feed::HistoryRequest last;
  last.last = 10;
  TestFeed feed(database, last, {.action = {}, .accounts = {7}, .states = {"delivery"}});
  flush_counts(feed.session());
  flush_counts(*connection);
  connection->run("SELECT pg_stat_reset()");
  CHECK(feed.take().size() == 1);
  feed.session().transact([&](pqxx::work& transaction) {
    CHECK(feed::read_history(transaction, last, {.action = {}, .accounts = {7}, .states = {"delivery"}})
              .size() == 1);
  });
  flush_counts(feed.session());
  CHECK(rows_read(*connection, "mailroom_deliveries") < 10);
}

TEST_CASE("a verification leaves no prepared statement behind") {
  TestDatabase database;
  const auto connection = database.connect();
  CHECK(schema::verify_schema(*connection).is_sound());
  CHECK(schema::verify_schema(*connection).is_sound());
  CHECK(value<int>(*connection, "SELECT count(*) FROM pg_prepared_statements") == 0);
  CHECK(value<std::string>(*connection, "SHOW plan_cache_mode") == "auto");
}

TEST_CASE("a function's body is digested only if the digest may be compared") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->dry_run([](pqxx::work& transaction) {
    for (const auto& [key, entry] : schema::read_catalogue(transaction, "public")) {
      INFO(key.name);
      CHECK(entry.body_digest.empty() == (entry.definition.find("RETURNS trigger") == std::string::npos));
    }
  });
}

TEST_CASE("migrating down from the queue's tables reads their records once") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run(
      "INSERT INTO mailroom_batches (queue, ids, collector, emitted_at, cursor, open_from, gap_ids) "
      "SELECT 'mailroom', '{}', 1, now(), g, 1, '{}' FROM generate_series(1, 10000) g");
  connection->run("ANALYZE mailroom_batches");
  connection->dry_run([](pqxx::work& transaction) {
    db::Connection::execute(transaction, schema::embedded_functions().migration.down);
    for (const auto& statement : schema::split_statements(schema::embedded_migrations()[7].down)) {
      if (statement.text.find("DROP") != std::string::npos) break;
      db::Connection::execute(transaction, statement.text);
    }
    CHECK(db::Connection::execute(transaction, "SELECT last_seq FROM jobs")[0][0].as<int>() == 10'000);
    CHECK(db::Connection::execute(
              transaction,
              "SELECT sum(pg_stat_get_xact_tuples_returned(c.oid)) FROM pg_class c WHERE c.relkind = 'r' "
              "AND c.oid = 'mailroom_batches'::regclass")[0][0]
              .as<int>() < 15'000);
  });
}

}  // namespace mailroom::test::command_cost_test
