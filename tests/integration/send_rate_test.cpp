// The rate of a queue: how many tokens its consumers may take together.

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::send_rate_test {
namespace {

/// A session of a sender on a queue that allows a token every `gap` seconds.
std::unique_ptr<claim::PgQueueSession> attach_paced(const TestDatabase& database, double gap, int burst) {
  set_rate(*database.connect(), "mailroom", gap, burst);
  return attach_sender(database);
}

/// Acknowledges the batch as accepted.
claim::Receipt accept(claim::QueueSession& session, const claim::Lease& lease) {
  claim::Receipt receipt{lease, {}};
  receipt.outcomes.emplace();
  for (const auto id : fetch_ids(session, lease)) {
    receipt.outcomes->push_back({.token = id, .attempts = 1, .reply = "ok"});
    ++receipt.counts.emitted;
  }
  return receipt;
}

}  // namespace

TEST_CASE("a claim takes no more tokens than the burst, then none until the rate allows one") {
  TestDatabase database;
  insert_accounts(*database.connect(), 20);
  const auto session = attach_paced(database, 1000, 4);
  const auto first = session->claim({.limit = 10, .partial = true});
  REQUIRE(first.lease);
  CHECK(first.wait > Milliseconds(900'000));
  CHECK(first.wait <= Milliseconds(1'000'000));
  const auto receipt = accept(*session, *first.lease);
  CHECK(receipt.counts.emitted == 4);
  const auto none = session->claim({.limit = 10, .partial = true, .receipt = receipt});
  CHECK_FALSE(none.lease);
  CHECK_FALSE(none.receipt_void);
  const auto connection = database.connect();
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = 'accepted'") == 4);
  connection->run("UPDATE mailroom_budgets SET taken_until = taken_until - interval '2500 s'");
  const auto next = session->claim({.limit = 10, .partial = true});
  REQUIRE(next.lease);
  CHECK(fetch_ids(*session, *next.lease) == Ids{5, 6});
  CHECK(next.wait > Milliseconds(400'000));
  CHECK(next.wait <= Milliseconds(500'000));
}

TEST_CASE("after a pause a claim takes the burst, and no more") {
  TestDatabase database;
  insert_accounts(*database.connect(), 20);
  const auto session = attach_paced(database, 1, 3);
  database.connect()->run("UPDATE mailroom_budgets SET taken_until = '2000-01-01'");
  const auto reply = session->claim({.limit = 10, .partial = true});
  REQUIRE(reply.lease);
  CHECK(fetch_ids(*session, *reply.lease) == Ids{1, 2, 3});
}

TEST_CASE("the rate holds for all consumers of a queue together") {
  TestDatabase database;
  insert_accounts(*database.connect(), 20);
  const auto one = attach_paced(database, 1000, 5);
  const auto other = attach_paced(database, 1000, 5);
  const auto third = attach_paced(database, 1000, 5);
  CHECK(one->claim({.limit = 3, .partial = true}).lease);
  const auto reply = other->claim({.limit = 3, .partial = true});
  REQUIRE(reply.lease);
  CHECK(fetch_ids(*other, *reply.lease) == Ids{4, 5});
  CHECK_FALSE(third->claim({.limit = 3, .partial = true}).lease);
}

TEST_CASE("a claim that takes nothing leaves the budget as it is") {
  TestDatabase database;
  const auto session = attach_paced(database, 1000, 1);
  for (int i = 0; i < 3; ++i) {
    const auto reply = session->claim({.limit = 10, .partial = true});
    CHECK_FALSE(reply.lease);
    CHECK(reply.wait == Milliseconds(0));
  }
  CHECK(value<bool>(*database.connect(), "SELECT taken_until = '-infinity' FROM mailroom_budgets"));
}

TEST_CASE("an abandoned batch waits until the rate allows all its tokens, or the burst is full") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 6);
  const auto session = attach_paced(database, 1000, 6);
  REQUIRE(session->claim({.limit = 4, .partial = true}).lease);
  // The session's own batch, whose reply was lost.
  const auto none = session->claim({.limit = 4, .partial = true});
  CHECK_FALSE(none.lease);
  CHECK(none.wait > Milliseconds(1'900'000));
  CHECK(none.wait <= Milliseconds(2'000'000));
  connection->run("UPDATE mailroom_budgets SET taken_until = taken_until - interval '2000 s'");
  const auto again = session->claim({.limit = 4, .partial = true});
  REQUIRE(again.lease);
  CHECK(again.lease->attempt == 2);
  CHECK(value<bool>(*connection,
                    "SELECT taken_until > clock_timestamp() + interval '5900 s' FROM mailroom_budgets"));

  const auto smaller = attach_paced(database, 1000, 2);
  connection->run("UPDATE mailroom_budgets SET taken_until = '2000-01-01'");
  connection->run("UPDATE mailroom_batches SET collector = 0");
  const auto whole = smaller->claim({.limit = 4, .partial = true});
  REQUIRE(whole.lease);
  const auto receipt = accept(*smaller, *whole.lease);
  CHECK(receipt.counts.emitted == 4);
  // It has taken two more than the burst.
  const auto later = smaller->claim({.limit = 4, .partial = true, .receipt = receipt});
  CHECK_FALSE(later.lease);
  CHECK_FALSE(later.more);
  CHECK(later.wait > Milliseconds(2'900'000));
  CHECK(later.wait <= Milliseconds(3'000'000));
}

TEST_CASE("an abandoned batch that a rewind has emptied is leased again even if the rate allows nothing") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 4);
  const auto session = attach_paced(database, 1000, 4);
  REQUIRE(session->claim({.limit = 4, .partial = true}).lease);
  connection->run("SELECT mailroom_rewind('mailroom', 0, 10, '{}')");
  const auto again = session->claim({.limit = 4, .partial = true});
  REQUIRE(again.lease);
  CHECK(again.lease->attempt == 2);
  CHECK(again.size == 0);
  CHECK(again.more);
  const auto none = session->claim({.limit = 4, .partial = true, .receipt = accept(*session, *again.lease)});
  CHECK_FALSE(none.lease);
  CHECK_FALSE(none.receipt_void);
  CHECK(none.wait > Milliseconds(900'000));
}

TEST_CASE("over any time no more tokens are taken than the rate allows, plus the burst") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 500);
  constexpr double gap = 0.002;
  constexpr int burst = 7;
  std::vector<std::unique_ptr<claim::PgQueueSession>> sessions;
  for (int i = 0; i < 3; ++i)
    sessions.push_back(attach_paced(database, gap, burst));
  std::vector<std::optional<claim::Receipt>> receipts(sessions.size());
  std::vector<int> taken;
  for (std::size_t i = 0; taken.size() < 150; ++i) {
    auto& session = *sessions[i % sessions.size()];
    auto& receipt = receipts[i % sessions.size()];
    const auto reply =
        session.claim({.limit = 1 + static_cast<int>(i % 5), .partial = true, .receipt = receipt});
    receipt.reset();
    if (!reply.lease) continue;
    receipt = accept(session, *reply.lease);
    taken.push_back(receipt->counts.emitted);
  }
  // A batch is recorded after the claim has read what it may take, so of two batches the first may have been
  // taken earlier than it says, and the second not later.
  const auto times = connection->run(
      "SELECT extract(epoch FROM claimed_at)::float8 FROM mailroom_batches WHERE NOT isempty(ids + skipped_ids) ORDER BY id");
  REQUIRE(static_cast<std::size_t>(times.size()) == taken.size());
  const auto at = [&](std::size_t i) {
    return times[static_cast<pqxx::result::size_type>(i)][0].as<double>();
  };
  for (std::size_t from = 1; from < taken.size(); ++from) {
    int count = 0;
    for (std::size_t to = from; to < taken.size(); ++to) {
      count += taken[to];
      REQUIRE(count <= burst + (at(to) - at(from - 1)) / gap);
    }
  }
}

}  // namespace mailroom::test::send_rate_test
