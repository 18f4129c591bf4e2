// What `mailroom audit --stages` reads, from what real consumers leave behind.

#include "audit/stages.hpp"

#include <algorithm>

#include "fault/cluster.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::stages_test {
namespace {

bool has_step(const audit::StageReport& report, audit::TokenStage from, audit::TokenStage to,
              std::int64_t tokens) {
  return std::any_of(report.stages.begin(), report.stages.end(), [&](const audit::StageTimes& times) {
    return times.from == from && times.to == to && times.tokens == tokens && times.p50 <= times.p90 &&
           times.p90 <= times.p99 && times.p99 <= times.max;
  });
}

/// True if no stage is before an earlier one.
bool is_in_order(const audit::StagedToken& token) {
  std::optional<Moment> last;
  for (const auto& at : token.at) {
    if (at && last && *at < *last) return false;
    if (at) last = at;
  }
  return true;
}

}  // namespace

TEST_CASE("the stages of collected and of mailed tokens are on record, with their commits") {
  const Cluster cluster(Cluster::Options{.settings = {"track_commit_timestamp = on"}});
  const auto conninfo = cluster.conninfo("postgres");
  db::Connection connection(conninfo, "test");
  migrate(connection);
  insert_accounts(connection, 12, "read");
  TestCollector collector(conninfo, {"--once", "--format", "jsonl"});
  REQUIRE(collector.process().wait() == 0);
  const auto collected = audit::read_stages(connection, {}, {});
  CHECK(collected.has_commits);
  CHECK(collected.tokens == 12);
  CHECK(has_step(collected, audit::TokenStage::created, audit::TokenStage::committed, 12));
  CHECK(has_step(collected, audit::TokenStage::committed, audit::TokenStage::claimed, 12));
  CHECK(has_step(collected, audit::TokenStage::claimed, audit::TokenStage::signed_, 12));
  CHECK(has_step(collected, audit::TokenStage::signed_, audit::TokenStage::written, 12));
  CHECK(has_step(collected, audit::TokenStage::created, audit::TokenStage::written, 12));
  CHECK(collected.slowest.size() == 10);
  for (const auto& token : collected.slowest)
    CHECK(is_in_order(token));

  const TestRelay relay;
  insert_accounts(connection, 3, "mailed");
  TestSender sender(conninfo, relay.url(), {"--once"});
  REQUIRE(sender.wait() == 0);
  const auto both = audit::read_stages(connection, {}, {});
  CHECK(both.tokens == 15);
  CHECK(has_step(both, audit::TokenStage::signed_, audit::TokenStage::accepted, 3));
  const auto mailed = audit::read_stages(connection, {.token = 13}, {});
  CHECK(mailed.tokens == 1);
  REQUIRE(mailed.slowest.size() == 1);
  CHECK(mailed.slowest.front().token == 13);
  CHECK(is_in_order(mailed.slowest.front()));
  CHECK(value<bool>(connection, "SELECT bool_and(answered_at < accepted_at) FROM mailroom_deliveries"));
  CHECK(!mailed.slowest.front().at[static_cast<std::size_t>(audit::TokenStage::written)]);

  // Consuming a token writes its row anew, so its commit is no longer known.
  connection.run("UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id <= 2");
  const auto consumed = audit::read_stages(connection, {}, {});
  CHECK(has_step(consumed, audit::TokenStage::created, audit::TokenStage::committed, 13));
  CHECK(has_step(consumed, audit::TokenStage::created, audit::TokenStage::claimed, 2));
}

TEST_CASE("stages are narrowed to an account, a batch and a period") {
  const TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 12);
  TestCollector collector(database, {"--once"});
  REQUIRE(collector.process().wait() == 0);
  CHECK(audit::read_stages(*connection, {.account = 5}, {}).tokens == 1);
  CHECK(audit::read_stages(*connection, {.account = 99}, {}).tokens == 0);
  CHECK(audit::read_stages(*connection, {.batch = 2}, {}).tokens == 2);
  CHECK(audit::read_stages(*connection, {}, {.until = "1h"}).tokens == 0);
  CHECK(audit::read_stages(*connection, {}, {.since = "1h"}).tokens == 12);
}

}  // namespace mailroom::test::stages_test
