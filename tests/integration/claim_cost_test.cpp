// What a batch costs the server, in counts that are the same on every machine. Runs alone on the server,
// because it counts WAL and transaction ids.

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "base/json.hpp"
#include "support/catch.hpp"
#include "support/old_tokens.hpp"
#include "support/server_counts.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::claim_cost_test {
namespace {

struct Drained {
  std::int64_t tokens = 0;
  std::int64_t batches = 0;
};

/// Emits all due tokens, as a collector does.
Drained drain(claim::QueueSession& session, int limit) {
  Drained drained;
  claim::ClaimRequest request{.limit = limit, .partial = true};
  for (;;) {
    const auto reply = session.claim(request);
    if (!reply.lease) return drained;
    claim::BatchCounts counts;
    session.fetch(*reply.lease, [&](const claim::TokenRow&) { ++counts.emitted; });
    drained.tokens += counts.emitted;
    ++drained.batches;
    request.receipt = claim::Receipt{*reply.lease, counts};
  }
}

/// The blocks that a claim of ten tokens touches, including those of its functions.
std::int64_t blocks_of_a_claim(const TestDatabase& database) {
  const auto connection = database.connect();
  const auto pid = value<int>(*connection, "SELECT mailroom_attach('mailroom')");
  std::int64_t least = 1'000'000;
  // The first claims of a session read the catalogue as well.
  for (int i = 0; i < 4; ++i) {
    const auto batch = value<std::int64_t>(*connection, "SELECT coalesce(max(id), 0) FROM mailroom_batches");
    const auto plan = connection->run(
        "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT * FROM mailroom_claim("
        "$1, 'mailroom', 10, true, true, false, false, NULL, ROW($2, 1, 10, 0, 0, 0, 0, '{}', NULL, 1000, 500)::mailroom_receipt)",
        pid, batch)[0][0];
    const auto top = parse_json(plan.c_str())[0]["Plan"];
    least = std::min(
        least, top["Shared Hit Blocks"].get<std::int64_t>() + top["Shared Read Blocks"].get<std::int64_t>());
  }
  return least;
}

}  // namespace

TEST_CASE("a batch is one round trip, or three if it is large, and reads only the rows that it emits") {
  const auto limit = GENERATE(10, 100, 1000);
  const bool is_large = limit >= 100;
  CAPTURE(limit);
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3 * limit);
  if (GENERATE(false, true)) connection->run("ANALYZE");
  log_everything(database);
  ServerLog log;
  const auto session = attach(database);
  const auto drained = drain(*session, limit);
  CHECK(drained.tokens == 3 * limit);
  REQUIRE(drained.batches == 3);
  const auto pid = value<int>(*connection, "SELECT max(collector) FROM mailroom_batches");
  const auto entries = log.entries_of(pid);

  const auto claims = with(entries, "LOG:  execute claim and fetch:");
  REQUIRE(claims.size() == 4);
  const auto reads =
      with(entries, "LOG:  execute tokens").size() + with(entries, "LOG:  execute accounts of a ").size();
  CHECK(reads == (is_large ? 6 : 0));
  const auto first = std::find(entries.begin(), entries.end(), claims.at(0));
  const auto after = [&](const std::string& words) {
    return with(std::vector<std::string>(first, entries.end()), words).size();
  };
  CHECK(after("LOG:  execute ") + after("LOG:  statement: ") == 4 + reads);

  const auto plans = with(entries, " plan:\n");
  const auto of_tokens = with(plans, " on tokens ");
  REQUIRE(of_tokens.size() >= 7);
  const auto rows = fmt::format("(actual rows={} loops=1)", limit);
  for (const auto& plan : of_tokens) {
    INFO(plan);
    CHECK(plan.find("Index Cond: ((id >") != std::string::npos);
    for (const auto* wrong : {"Seq Scan", "Hash Join", "Merge Join", "Memoize", "Bitmap", "JIT:"})
      CHECK(plan.find(wrong) == std::string::npos);
  }
  CHECK(with(of_tokens, rows).size() == 6);
  const auto of_accounts = with(plans, " on accounts ");
  CHECK(of_accounts.size() == 3);
  for (const auto& plan : of_accounts) {
    INFO(plan);
    CHECK(plan.find(!is_large ? fmt::format("rows=1 loops={})", limit) : rows) != std::string::npos);
  }
}

TEST_CASE("the usual claim takes six statements on the server, including the client's and the fetch") {
  const auto limit = GENERATE(1, 99);
  CAPTURE(limit);
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 4 * limit);
  log_everything(database);
  ServerLog log;
  const auto session = attach(database);
  CHECK(drain(*session, limit).batches == 4);
  const auto entries = log.entries_of(value<int>(*connection, "SELECT max(collector) FROM mailroom_batches"));

  const auto is_claim = [](const auto& entry) {
    return entry.find("LOG:  execute claim and fetch:") != std::string::npos;
  };
  // The first claim of a queue finds no state row, so it is not a usual one; with the second the server
  // plans, and then runs what is constant.
  const auto first = std::find_if(entries.begin(), entries.end(), is_claim);
  const auto second = std::find_if(first + 1, entries.end(), is_claim);
  const auto third = std::find_if(second + 1, entries.end(), is_claim);
  REQUIRE(third != entries.end());
  const auto fourth = std::find_if(third + 1, entries.end(), is_claim);
  REQUIRE(fourth != entries.end());
  const std::vector<std::string> of_a_claim(third, fourth);
  CHECK(with(of_a_claim, " plan:\n").size() == 6);
  CHECK(with(of_a_claim, "mailroom_claim_any").empty());
  CHECK_FALSE(with({first, second}, "mailroom_claim_any").empty());
}

TEST_CASE("a collector without work runs one statement per poll, and claims nothing") {
  TestDatabase database;
  log_everything(database);
  ServerLog log;
  TestCollector collector(database, {"--poll-interval", "100ms"});
  REQUIRE(collector.connected());
  const auto connection = database.connect();
  keep_autovacuum_away(*connection);
  const auto pid =
      value<int>(*connection,
                 "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'mailroom collect%' "
                 "AND datname = current_database()");
  const auto polls = [&] { return with(log.entries_of(pid), "LOG:  execute poll:").size(); };
  REQUIRE(eventually([&] { return polls() >= 1; }));
  const auto before = xid(*connection);
  REQUIRE(eventually([&] { return polls() >= 5; }));
  CHECK(xid(*connection) == before);
  const auto entries = log.entries_of(pid);
  const auto first = std::find(entries.begin(), entries.end(), with(entries, "LOG:  execute poll:").front());
  const std::vector<std::string> idle(first, entries.end());
  CHECK(with(idle, "LOG:  execute ").size() == with(idle, "LOG:  execute poll:").size());
  CHECK(with(idle, "LOG:  statement: ").empty());
  CHECK(collector.stop() == 0);
}

TEST_CASE("a batch is one transaction, and its WAL does not grow with its number of tokens") {
  TestDatabase database;
  const auto connection = database.connect();
  keep_autovacuum_away(*connection);
  const auto session = attach(database);
  const auto cost = [&](int tokens, int limit, const std::function<std::int64_t(db::Connection&)>& counter) {
    insert_accounts(*connection, tokens, "user" + std::to_string(counter(*connection)));
    const auto before = counter(*connection);
    CHECK(drain(*session, limit).batches == tokens / limit);
    return counter(*connection) - before;
  };
  // One more: the last claim acknowledges the last batch.
  CHECK(cost(100, 10, xid) == 11);
  CHECK(cost(100, 1, xid) == 101);

  // The first change of a page after a checkpoint logs the whole page; the minimum of three runs has none.
  const auto min_wal = [&](int tokens, int limit) {
    std::int64_t least = cost(tokens, limit, wal_bytes);
    for (int i = 0; i < 2; ++i)
      least = std::min(least, cost(tokens, limit, wal_bytes));
    return least;
  };
  const auto small = min_wal(400, 10);
  const auto large = min_wal(4'000, 100);
  CAPTURE(small, large);
  CHECK(small / 40 <= 900);
  CHECK(large <= small + small / 10);
}

TEST_CASE("the blocks that a claim touches depend neither on rows below the cursor nor on waiting tokens") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1000, "first");
  const auto few = blocks_of_a_claim(database);
  add_old_tokens(*connection, 100'000);
  connection->run(
      "INSERT INTO mailroom_batches (queue, ids, collector, emitted_at, cursor, open_from, gap_ids) "
      "SELECT 'mailroom', '{}', 0, now(), last_value, (SELECT max(id) FROM mailroom_batches), '{}' "
      "FROM tokens_id_seq");
  load_accounts(*connection, 50'000, "second");
  const auto many = blocks_of_a_claim(database);
  CAPTURE(few, many);
  CHECK(few <= 32);
  // An index or two may have one level more.
  CHECK(many <= few + 10);
}

TEST_CASE("a claim that passes expired tokens runs no statement for each of them") {
  const auto plans_of_a_claim = [](int expired) {
    TestDatabase database;
    const auto connection = database.connect();
    insert_accounts(*connection, expired);
    connection->run("UPDATE tokens SET created_at = created_at - 100000, expires_at = expires_at - 100000");
    log_everything(database);
    ServerLog log;
    const auto session = attach(database);
    CHECK_FALSE(session->claim({.limit = 1000, .partial = true}).lease);
    CHECK(value<int>(*connection, "SELECT sum(skipped_expired) FROM mailroom_batches") == expired);
    const auto pid =
        value<int>(*connection,
                   "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid = "
                   "mailroom_lock_class('collector')::oid AND database = (SELECT oid FROM pg_database "
                   "WHERE datname = current_database())");
    return with(log.entries_of(pid), " plan:\n").size();
  };
  const auto few = plans_of_a_claim(100);
  CHECK(few > 0);
  CHECK(plans_of_a_claim(200) == few);
}

TEST_CASE("a claim passes expired tokens by an index, without reading their rows") {
  constexpr int expired = 20'000;
  TestDatabase database;
  const auto connection = database.connect();
  keep_autovacuum_away(*connection);
  insert_accounts(*connection, expired);
  connection->run("UPDATE tokens SET created_at = created_at - 100000, expires_at = expires_at - 100000");
  connection->run("VACUUM ANALYZE tokens");
  connection->run("SELECT pg_stat_force_next_flush()");
  connection->run("SELECT pg_stat_reset()");
  {
    const auto session = attach(database);
    while (value<std::int64_t>(*connection, "SELECT coalesce(max(cursor), 0) FROM mailroom_batches") <
           expired)
      CHECK_FALSE(session->claim({.limit = 1000, .partial = true}).lease);
  }
  // A session reports what it has read at its end.
  const auto rows = [&] {
    return value<std::int64_t>(
        *connection, "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'tokens'");
  };
  const auto entries = [&] {
    return value<std::int64_t>(*connection,
                               "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'tokens'");
  };
  REQUIRE(eventually([&] { return entries() >= expired; }));
  CHECK(rows() < expired / 10);
}

TEST_CASE("a sender commits once for each batch, with the outcomes of its mails") {
  TestDatabase database;
  const auto connection = database.connect();
  keep_autovacuum_away(*connection);
  insert_accounts(*connection, 60);
  // Slower than a claim, so that two batches are open.
  TestRelay relay({.play = [](const RelayMoment& moment) {
    return RelayAnswer{.delay = Milliseconds(moment.step == RelayStep::end ? 100 : 0)};
  }});
  const auto before = xid(*connection);
  CHECK(TestSender(database.conninfo(), relay.url(), {"--once", "--batch-limit", "10"}).wait() == 0);
  const auto batches =
      value<std::int64_t>(*connection, "SELECT count(*) FROM mailroom_batches WHERE emitted > 0");
  CHECK(batches <= 12);
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = 'accepted'") == 60);
  // Half of the limit each, but for those of which one is open. One commit for each claim, which records the
  // outcomes of an earlier batch, two for the outcomes of the last two, and one that says that a session with
  // the relay has begun.
  CHECK(xid(*connection) - before == batches + 3);
}

}  // namespace mailroom::test::claim_cost_test
