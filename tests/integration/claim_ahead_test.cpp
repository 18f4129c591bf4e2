// The next batch is claimed while a large one is read, in a second session.

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fmt/format.h>
#include <random>
#include <thread>

#include "base/json.hpp"
#include "support/catch.hpp"
#include "support/named_pipe.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::claim_ahead_test {
namespace {

const std::vector<std::string> large_batches{"--once", "--batch-limit", "2000", "--format", "jsonl"};

void check_each_once(const std::string& output, std::int64_t tokens) {
  const auto emitted = emitted_ids(output);
  CHECK(static_cast<std::int64_t>(emitted.size()) == tokens);
  CHECK(std::ranges::all_of(emitted, [](const auto& token) { return token.second == 1; }));
}

std::int64_t open_leases(db::Connection& connection) {
  return value<std::int64_t>(connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL");
}

std::int64_t recorded(db::Connection& connection) {
  return value<std::int64_t>(connection, "SELECT coalesce(sum(emitted), 0)::bigint FROM mailroom_batches");
}

/// How many batches were claimed before the one before had been written.
std::int64_t claimed_ahead(db::Connection& connection) {
  return value<std::int64_t>(connection, R"(
SELECT count(*) FROM (SELECT claimed_at, lag(written_at) OVER (ORDER BY id) AS before FROM mailroom_batches) b
WHERE claimed_at < before)");
}

/// A backlog whose tokens belong to accounts far apart, as when all users are asked to choose a new password,
/// but for the first batch: nothing is claimed ahead before it has been written.
void insert_scattered(db::Connection& connection, int count, const std::string& prefix = "user") {
  load_accounts(connection, count, prefix,
                "CASE WHEN id > 2000 THEN 2001 + id * 7919 % ($1 - 2000) ELSE id END");
}

/// The addresses that were emitted with each token are those of its account.
void check_addresses(db::Connection& connection, const TestCollector& collector) {
  std::map<std::int64_t, std::string> emails;
  for (const auto& row :
       connection.run("SELECT t.id, a.email FROM tokens t JOIN accounts a ON a.id = t.account"))
    emails[row[0].as<std::int64_t>()] = row[1].as<std::string>();
  std::int64_t wrong = 0;
  for (const auto& token : emitted_tokens(collector.output()))
    wrong += token.at("email") == emails.at(token.at("id")) ? 0 : 1;
  CHECK(wrong == 0);
}

/// Lets statements that read accounts above `last` wait for a lock.
void slow_accounts_above(db::Connection& connection, int last) {
  connection.run(fmt::format(R"(
ALTER TABLE accounts RENAME TO original_accounts;
CREATE FUNCTION slowly(p_id bigint, p_status account_status) RETURNS account_status LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF p_id > {} THEN
    PERFORM pg_advisory_xact_lock_shared(7);
  END IF;
  RETURN p_status;
END $$;
CREATE VIEW accounts AS SELECT id, email, login, slowly(id, status) AS status FROM original_accounts)",
                             last));
}

/// How many sessions of that program wait for the lock.
int waiting(db::Connection& connection, const std::string& program) {
  return value<int>(connection,
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND wait_event = 'advisory' AND application_name LIKE '" +
                        program + "%'");
}

}  // namespace

TEST_CASE("the session of a sender claims the next batch while mails are made, as soon as it is asked") {
  TestDatabase database;
  insert_accounts(*database.connect(), 20);
  const auto session = attach_sender(database);
  const auto first = session->claim({.limit = 5, .partial = true});
  REQUIRE(first.lease);
  const claim::ClaimRequest request{.limit = 5, .partial = true, .held = first.lease->batch};
  int asked = 0;
  Ids ids;
  const auto reply = session->fetch_and_claim(
      *first.lease, [&](const claim::TokenRow& row) { ids.push_back(row.id); },
      [&] { return ++asked == 3 ? &request : nullptr; });
  CHECK(asked == 3);
  CHECK(ids == Ids{1, 2, 3, 4, 5});
  REQUIRE(reply);
  REQUIRE(reply->lease);
  CHECK(fetch_ids(*session, *reply->lease) == Ids{6, 7, 8, 9, 10});
}

TEST_CASE("a claim that fails while mails are made keeps none of them back, and the next one says why") {
  TestDatabase database;
  insert_accounts(*database.connect(), 20);
  const auto session = attach_sender(database);
  const auto first = session->claim({.limit = 5, .partial = true});
  REQUIRE(first.lease);
  const claim::ClaimRequest request{.limit = 5, .partial = true, .held = first.lease->batch};
  Ids ids;
  const auto add = [&](const claim::TokenRow& row) {
    ids.push_back(row.id);
    if (ids.size() > 1) return;
    database.connect()->run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        "pg_backend_pid()");
  };
  CHECK_FALSE(session->fetch_and_claim(*first.lease, add, [&] { return &request; }));
  CHECK(ids == Ids{1, 2, 3, 4, 5});
  CHECK_THROWS_AS(session->claim(request), db::ConnectionLost);
}

TEST_CASE("nothing is claimed while a session still reads contents of the mails that are made") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run(
      "SELECT mailroom_send(ARRAY['ada@app.example'], subject => 's', text => repeat('long ', 100000))");
  connection->run("SELECT mailroom_send(ARRAY['ada@app.example'], subject => 's', text => 'short')");
  const auto session = attach_sender(database);
  const auto first = session->claim({.limit = 5, .partial = true});
  REQUIRE(first.lease);
  const claim::ClaimRequest request{.limit = 5, .partial = true, .held = first.lease->batch};
  std::vector<std::size_t> sizes;
  const auto add = [&](const claim::TokenRow& row) { sizes.push_back(row.content->text->size()); };
  CHECK_FALSE(session->fetch_and_claim(*first.lease, add, [&] { return &request; }));
  CHECK(sizes == std::vector<std::size_t>{500'000, 5});
}

TEST_CASE("accounts far apart are read in two sessions, and each token goes to its own") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_scattered(*connection, 20'500);
  TestCollector collector(database, large_batches);
  REQUIRE(collector.process().wait() == 0);
  check_each_once(collector.output(), 20'500);
  check_addresses(*connection, collector);
  CHECK(claimed_ahead(*connection) > 0);
}

TEST_CASE("a stop while the accounts of a batch are locked, for one of two sessions or both, loses nothing") {
  // Above the second one are accounts of one part alone, which either session may read.
  const auto last = GENERATE(2'000, 20'400);
  CAPTURE(last);
  TestDatabase database;
  const auto connection = database.connect();
  insert_scattered(*connection, 20'500);
  slow_accounts_above(*connection, last);
  const auto holder = database.connect();
  holder->run("SELECT pg_advisory_lock(7)");
  TestCollector collector(database, large_batches);
  REQUIRE(eventually([&] {
    return waiting(*connection, "mailroom collect") + waiting(*connection, "mailroom read") ==
           (last == 2'000 ? 2 : 1);
  }));
  CHECK(collector.stop() == 0);
  INFO(collector.log());
  check_each_once(collector.output(), 2'000);
  holder->run("SELECT pg_advisory_unlock(7)");
  TestCollector next(database, large_batches);
  REQUIRE(next.process().wait() == 0);
  check_each_once(collector.output() + next.output(), 20'500);
  CHECK(open_leases(*connection) == 0);
}

TEST_CASE("batches of a backlog are claimed while the ones before are read") {
  TestDatabase database;
  const auto connection = database.connect();
  load_accounts(*connection, 20'500);
  TestCollector collector(database, large_batches);
  REQUIRE(collector.process().wait() == 0);
  check_each_once(collector.output(), 20'500);
  CHECK(collector.lines().size() == 11);
  CHECK(claimed_ahead(*connection) > 0);
  CHECK(open_leases(*connection) == 0);
  CHECK(value<std::int64_t>(*connection, "SELECT max(attempts) FROM mailroom_batches") == 1);
}

TEST_CASE("a token that expires while the reader is slow is not emitted, though it was read ahead") {
  TestDatabase database;
  const auto connection = database.connect();
  load_accounts(*connection, 30'000);
  NamedPipe pipe;
  TestCollector collector(database.conninfo(), large_batches, {}, pipe.path());
  std::string output;
  const auto read_on = [&] { output += pipe.take(1 << 16); };
  // Two are open once one has been claimed ahead. Most of the one before is still to be written.
  const auto is_claimed_ahead = [&] {
    const auto line = output.size() - (output.rfind('\n') + 1);
    return line < 200'000 && pipe.is_full() && open_leases(*connection) == 2;
  };
  while (!is_claimed_ahead() && output.size() < 4'000'000) {
    for (int i = 0; i < 20; ++i)
      read_on();
  }
  REQUIRE(is_claimed_ahead());
  const auto expired = connection->run(R"(
UPDATE tokens t SET expires_at = created_at
FROM (SELECT ids FROM mailroom_batches ORDER BY id DESC LIMIT 1) b WHERE b.ids @> t.id RETURNING t.id)");
  REQUIRE(expired.size() == 2000);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  std::atomic<bool> has_ended{false};
  std::thread reader([&] {
    while (!has_ended)
      read_on();
  });
  CHECK(collector.process().wait() == 0);
  has_ended = true;
  reader.join();
  read_on();
  const auto emitted = emitted_ids(output);
  CHECK(emitted.size() == 28'000);
  int late = 0;
  for (const auto& row : expired)
    late += emitted.contains(row[0].as<std::int64_t>()) ? 1 : 0;
  CHECK(late == 0);
}

TEST_CASE("a role that may have one session only claims and reads in turns") {
  TestDatabase database;
  const auto connection = database.connect();
  load_accounts(*connection, 10'000);
  connection->run("CREATE ROLE single LOGIN CONNECTION LIMIT 1");
  connection->run("GRANT ALL ON ALL TABLES IN SCHEMA public TO single");
  connection->run("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO single");
  TestCollector collector(database.conninfo() + " user=single", large_batches);
  const auto status = collector.process().wait();
  connection->run("DROP OWNED BY single");
  connection->run("DROP ROLE single");
  INFO(collector.log());
  REQUIRE(status == 0);
  check_each_once(collector.output(), 10'000);
  CHECK(claimed_ahead(*connection) == 0);
  CHECK(count(collector.log(), "no second session for large batches") == 1);
  CHECK(count(collector.log(), "too many connections for role") == 1);
}

TEST_CASE("the end of the second session loses and repeats nothing") {
  const bool is_scattered = GENERATE(false, true);
  CAPTURE(is_scattered);
  TestDatabase database;
  const auto connection = database.connect();
  std::string output;
  std::int64_t tokens = 0;
  std::int64_t ended = 0;
  // It claims ahead while it takes longer to read than its reader does, which the machine decides.
  while (ended == 0 && tokens < 600'000) {
    const auto prefix = fmt::format("from{}-", tokens);
    if (is_scattered) {
      insert_scattered(*connection, 30'000, prefix);
    } else {
      load_accounts(*connection, 30'000, prefix);
    }
    tokens += 30'000;
    // The collector is no faster than the sessions are ended.
    NamedPipe pipe;
    TestCollector collector(database.conninfo(), large_batches, {}, pipe.path());
    REQUIRE(eventually([&] {
      for (int i = 0; i < 4; ++i)
        output += pipe.take(1 << 16);
      if (ended < 3)
        ended += value<std::int64_t>(*connection, R"(
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'mailroom read %')");
      return recorded(*connection) == tokens;
    }));
    REQUIRE(collector.process().wait() == 0);
    for (auto rest = pipe.take(1 << 16); !rest.empty(); rest = pipe.take(1 << 16))
      output += rest;
  }
  CHECK(ended > 0);
  check_each_once(output, tokens);
  CHECK(open_leases(*connection) == 0);
}

TEST_CASE("collectors that are killed while they claim ahead repeat a batch at most, and lose none") {
  TestDatabase database;
  const auto connection = database.connect();
  std::int64_t tokens = 0;
  const auto load_more = [&] {
    load_accounts(*connection, 30'000, fmt::format("from{}-", tokens));
    tokens += 30'000;
  };
  load_more();
  std::mt19937_64 random(20261123);
  std::map<std::int64_t, int> emitted;
  int kills = 0;
  for (bool is_done = false; !is_done;) {
    // On a busy machine a collector may get far before it is killed.
    if (recorded(*connection) == tokens && kills <= 5 && tokens < 600'000) load_more();
    TestCollector collector(database, large_batches);
    const auto batches = random() % 6;
    const auto wait = std::chrono::microseconds(random() % 8000);
    REQUIRE(
        eventually([&] { return collector.lines().size() >= batches || recorded(*connection) == tokens; }));
    std::this_thread::sleep_for(wait);
    if (recorded(*connection) < tokens) collector.process().signal(SIGKILL);
    const bool was_killed = collector.process().wait() != 0;
    kills += was_killed ? 1 : 0;
    is_done = !was_killed && (kills > 5 || tokens >= 600'000);
    for (const auto& [id, times] : emitted_ids(collector.output()))
      emitted[id] += times;
  }
  CHECK(kills > 5);
  CHECK(static_cast<std::int64_t>(emitted.size()) == tokens);
  std::int64_t repeated = 0;
  for (const auto& [id, times] : emitted)
    repeated += times - 1;
  CHECK(repeated <= kills * 2000);
  CHECK(open_leases(*connection) == 0);
  CHECK(claimed_ahead(*connection) > 0);
}

}  // namespace mailroom::test::claim_ahead_test
