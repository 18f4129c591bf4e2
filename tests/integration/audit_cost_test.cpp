// What the history of one account or token, and doctor, read in a database with many of them.

#include "audit/history.hpp"
#include "support/catch.hpp"
#include "support/doctor_rig.hpp"
#include "support/subprocess.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::audit_cost_test {
namespace {

constexpr int accounts = 30'000;
constexpr int batches = 30'000;

/// A month of records: a token and a batch every 90 s; account 7 has one old and one new token.
void fill(db::Connection& connection) {
  connection.run("ALTER TABLE tokens DISABLE TRIGGER after_token_inserted");
  insert_accounts(connection, accounts);
  connection.run("INSERT INTO tokens (account, action) VALUES (7, 'password_recovery')");
  connection.run("UPDATE accounts SET status = 'active' WHERE id = 7");
  connection.run(
      "UPDATE tokens SET created_at = created_at - ($1::int + 1 - id) * 90, "
      "expires_at = expires_at - ($1::int + 1 - id) * 90",
      accounts);
  connection.run(
      "INSERT INTO mailroom_batches (queue, ids, collector, claimed_at, emitted_at, emitted, cursor, "
      "open_from, gap_ids) SELECT 'mailroom', int8multirange(int8range(g, g + 1)), 1, t, t, 1, g, g, '{}' "
      "FROM generate_series(1, $1::int) g, LATERAL (SELECT now() - ($1::int + 1 - g) * interval '90 s' AS t) "
      "s",
      batches);
  connection.run(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch, last_at) SELECT 'mailroom', g, 'rejected', 1, "
      "now() - ($1::int + 1 - g) * interval '90 s' FROM generate_series(1, $1::int) g WHERE g <> 7",
      batches);
  connection.run("VACUUM ANALYZE");
}

/// Counts what the session has read so far now, not some time later.
void count_reads(db::Connection& connection) {
  connection.run("SELECT pg_stat_force_next_flush()");
}

struct Reads {
  std::int64_t sequential = 0;
  std::int64_t rows = 0;
  std::int64_t index_scans = 0;
};

Reads reads_of(db::Connection& connection, const std::string& table) {
  // Statistics do not change within a transaction, so each read is its own transaction.
  const auto row = connection.run(
      "SELECT seq_scan, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0), coalesce(idx_scan, 0) "
      "FROM pg_stat_user_tables WHERE relname = $1",
      table)[0];
  return {row[0].as<std::int64_t>(), row[1].as<std::int64_t>(), row[2].as<std::int64_t>()};
}

/// A session's statistics reach the server shortly after the session ends.
Reads reads_after(db::Connection& connection, const std::string& table, const Reads& before) {
  Reads now;
  const bool is_counted = eventually([&] {
    now = reads_of(connection, table);
    return now.index_scans > before.index_scans || now.sequential > before.sequential;
  });
  INFO(table);
  CHECK(is_counted);
  return {now.sequential - before.sequential, now.rows - before.rows, now.index_scans - before.index_scans};
}

}  // namespace

TEST_CASE("the history of one account or token reads only its own period, however many others there are") {
  TestDatabase database;
  {
    const auto filling = database.connect();
    fill(*filling);
    count_reads(*filling);
  }
  const auto connection = database.connect();
  const auto tokens = reads_of(*connection, "tokens");
  const auto records = reads_of(*connection, "mailroom_batches");
  const auto mails = reads_of(*connection, "mailroom_deliveries");

  audit::History history;
  SECTION("an account with an old token and a new one") {
    const auto reader = database.connect();
    history = audit::read_account_history(*reader, 7, {}, {.queues = {"mailroom"}});
    REQUIRE(history.tokens.size() == 2);
    CHECK(history.tokens[1].status.outcome == fate::Outcome::emitted);
    CHECK(history.tokens[1].status.batch->id == 7);
  }
  SECTION("one token from the middle of the period") {
    const auto reader = database.connect();
    history = audit::read_token_history(*reader, accounts / 2, {.queues = {"mailroom"}});
    CHECK(history.tokens.front().deliveries.size() == 1);
  }
  const auto token_reads = reads_after(*connection, "tokens", tokens);
  const auto batch_reads = reads_after(*connection, "mailroom_batches", records);
  const auto mail_reads = reads_after(*connection, "mailroom_deliveries", mails);
  CAPTURE(token_reads.rows, batch_reads.rows, mail_reads.rows);
  CHECK(mail_reads.sequential == 0);
  CHECK(mail_reads.rows < 3);
  CHECK(token_reads.sequential == 0);
  CHECK(token_reads.rows < 10);
  CHECK(batch_reads.sequential == 0);
  CHECK(batch_reads.rows < 600);
}

TEST_CASE("doctor finds a dead letter without reading all batches") {
  TestDatabase database;
  {
    const auto filling = database.connect();
    fill(*filling);
    filling->run("UPDATE mailroom_batches SET emitted_at = NULL, dead_at = now() WHERE id = 5");
    count_reads(*filling);
  }
  const auto connection = database.connect();
  const auto before = reads_of(*connection, "mailroom_batches");
  CHECK(
      summary(DoctorRig(database).examine("batches")) ==
      "warning: batch 5 of the queue mailroom was dead-lettered after 1 attempts: 1 tokens were not emitted");
  const auto reads = reads_after(*connection, "mailroom_batches", before);
  CAPTURE(reads.rows);
  CHECK(reads.sequential == 0);
  // Other checks read the newest five thousand.
  CHECK(reads.rows < 6000);
}

}  // namespace mailroom::test::audit_cost_test
