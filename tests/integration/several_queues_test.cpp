// `mailroom collect` as a process that serves several queues.

#include "base/json.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::several_queues_test {
namespace {

/// Two queues: `recovery` comes first, `mailroom` takes activations. Accounts up to 10 can recover.
struct Rig : DatabaseRig {
  Rig() {
    insert_accounts(*connection, 10, "active");
    connection->run("UPDATE accounts SET status = 'active'");
    connection->run("DELETE FROM tokens");
    connection->run(
        R"(SELECT mailroom_create_queue('recovery', 0, '{"actions": ["password_recovery"], "priority": 10}', 'token_insert'))");
    connection->run(
        R"(SELECT mailroom_set_queue('mailroom', '{"actions": ["activation"]}', 'token_insert'))");
  }

  void activations(int count, const std::string& prefix) { insert_accounts(*connection, count, prefix); }
  void recoveries(int count) {
    connection->run(
        "INSERT INTO tokens (account, action) SELECT id, 'password_recovery' FROM accounts "
        "WHERE id <= $1",
        count);
  }

  /// Both queues keep this rate together.
  void share_budget(const std::string& rate) {
    connection->run("SELECT mailroom_set_budget('provider', $1::jsonb, 'x')", rate);
    connection->run(
        R"(SELECT mailroom_set_queue('recovery', '{"actions": ["password_recovery"], "priority": 10, "budget": "provider"}', 'x'))");
    connection->run(
        R"(SELECT mailroom_set_queue('mailroom', '{"actions": ["activation"], "budget": "provider"}', 'x'))");
  }

  static std::vector<std::string> options(std::vector<std::string> more = {}) {
    std::vector<std::string> all{"--queue", "mailroom,recovery", "--format",
                                 "jsonl",   "--poll-interval",   "1h"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

/// `recovery recovery mailroom`: the queue of each line.
std::vector<std::string> queues_of(const TestCollector& collector) {
  std::vector<std::string> queues;
  for (const auto& line : collector.lines())
    queues.push_back(parse_json(line).at("queue"));
  return queues;
}

long lines_of(const TestCollector& collector, const std::string& queue) {
  const auto queues = queues_of(collector);
  return std::count(queues.begin(), queues.end(), queue);
}

}  // namespace

TEST_CASE("a collector of several queues drains the one of the highest priority first") {
  Rig rig;
  rig.activations(30, "new");
  rig.recoveries(10);
  TestCollector collector(rig.database, Rig::options({"--once", "--batch-limit", "5"}));
  CHECK(collector.process().wait() == 0);
  INFO(collector.log());
  CHECK(queues_of(collector) == std::vector<std::string>{"recovery", "recovery", "mailroom", "mailroom",
                                                         "mailroom", "mailroom", "mailroom", "mailroom"});
  for (const auto& [id, times] : emitted_ids(collector.output()))
    CHECK(times == 1);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL") == 0);
}

TEST_CASE("a recovery does not wait for a backlog of activations") {
  Rig rig;
  rig.activations(20'000, "backlog");
  TestCollector collector(rig.database, Rig::options({"--batch-limit", "10", "--batch-timeout", "0ms"}));
  REQUIRE(eventually([&] { return lines_of(collector, "mailroom") > 20; }));
  rig.recoveries(1);
  REQUIRE(eventually([&] { return lines_of(collector, "recovery") == 1; }));
  REQUIRE(eventually([&] { return lines_of(collector, "mailroom") == 2'000; }, std::chrono::seconds(60)));
  const auto queues = queues_of(collector);
  const auto recovery = std::find(queues.begin(), queues.end(), "recovery") - queues.begin();
  CHECK(recovery < 1'900);
  CHECK(collector.stop() == 0);
}

TEST_CASE("with a shared budget the queue of the highest priority is served first, in full lines") {
  Rig rig;
  rig.share_budget(R"({"tokens": 1, "milliseconds": 100, "burst": 10})");
  rig.activations(15, "new");
  rig.recoveries(10);
  TestCollector collector(rig.database, Rig::options({"--batch-timeout", "0ms", "--poll-interval", "100ms"}));
  REQUIRE(eventually([&] { return emitted_ids(collector.output()).size() == 25; }));
  CHECK(queues_of(collector).front() == "recovery");
  CHECK(lines_of(collector, "recovery") == 1);
  CHECK(collector.stop() == 0);
}

TEST_CASE("with a shared budget a recovery waits for no activation that was not taken before it") {
  Rig rig;
  rig.share_budget(R"({"tokens": 14, "milliseconds": 1000, "burst": 10})");
  rig.activations(5'000, "backlog");
  TestCollector collector(rig.database, Rig::options({"--batch-limit", "10", "--batch-timeout", "0ms"}));
  for (int round = 1; round <= 4; ++round) {
    const auto emitted = lines_of(collector, "mailroom");
    REQUIRE(eventually([&] { return lines_of(collector, "mailroom") > emitted; }));
    rig.recoveries(1);
    const auto inserted = value<std::string>(*rig.connection, "SELECT clock_timestamp()");
    REQUIRE(eventually([&] { return lines_of(collector, "recovery") == round; }));
    const auto claimed_before = rig.connection->run(R"(
SELECT count(*) FROM mailroom_batches b
WHERE b.queue = 'mailroom' AND NOT isempty(b.ids) AND b.claimed_at > $1::timestamptz
  AND b.claimed_at < (SELECT max(r.claimed_at) FROM mailroom_batches r WHERE r.queue = 'recovery'))",
                                                    inserted);
    // One claim may have begun before the recovery was inserted.
    CHECK(claimed_before[0][0].as<int>() <= 1);
  }
  CHECK(collector.stop() == 0);
}

TEST_CASE("a paused queue is emitted by nobody until it is resumed, and the others go on") {
  Rig rig;
  TestCollector collector(rig.database, Rig::options({"--batch-timeout", "0ms"}));
  REQUIRE(collector.connected());
  rig.connection->run("SELECT mailroom_pause_queue('recovery', true, 'token_insert')");
  REQUIRE(eventually([&] { return collector.log().find("the queue is paused") != std::string::npos; }));
  rig.recoveries(5);
  rig.activations(5, "new");
  REQUIRE(eventually([&] { return emitted_ids(collector.output()).size() == 5; }));
  CHECK(lines_of(collector, "recovery") == 0);
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                   "AND application_name LIKE 'mailroom collect%' AND state LIKE 'idle in%'") == 0);
  // The poll interval is an hour, so only the notification of the resumption wakes it.
  rig.connection->run("SELECT mailroom_pause_queue('recovery', false, 'token_insert')");
  CHECK(eventually([&] { return emitted_ids(collector.output()).size() == 10; }));
  CHECK(collector.stop() == 0);
}

TEST_CASE("a collector ends when one of its queues is dropped, and names it") {
  Rig rig;
  TestCollector collector(rig.database, Rig::options());
  REQUIRE(collector.connected());
  rig.connection->run("SELECT mailroom_drop_queue('recovery', 'token_insert')");
  CHECK(collector.process().wait() == 3);
  CHECK(collector.log().find("unknown queue \"recovery\"") != std::string::npos);
}

TEST_CASE("a queue's batch limit holds for collectors that are not configured otherwise") {
  Rig rig;
  rig.connection->run(
      R"(SELECT mailroom_set_queue('recovery', '{"actions": ["password_recovery"], "batch_limit": "2"}', 'x'))");
  rig.recoveries(6);
  rig.activations(6, "new");
  TestCollector collector(rig.database, Rig::options({"--once"}));
  CHECK(collector.process().wait() == 0);
  CHECK(lines_of(collector, "recovery") == 3);
  CHECK(lines_of(collector, "mailroom") == 1);
  rig.recoveries(6);
  TestCollector configured(rig.database, Rig::options({"--once", "--batch-limit", "3"}));
  CHECK(configured.process().wait() == 0);
  CHECK(lines_of(configured, "recovery") == 2);
}

}  // namespace mailroom::test::several_queues_test
