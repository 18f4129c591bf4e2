// Two schemas of one database, with queues of equal names: neither sees or waits for the other.

#include <fmt/format.h>

#include "health/queue_health.hpp"
#include "support/catch.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::tenants_test {
namespace {

struct Tenants {
  Tenants() {
    database.connect()->run("CREATE EXTENSION pgcrypto; CREATE SCHEMA t1; CREATE SCHEMA t2");
    migrate(*one);
    migrate(*two);
  }

  std::string conninfo(const std::string& schema) const {
    return fmt::format("{} options='-csearch_path={},public -clock_timeout=5s'", database.conninfo(), schema);
  }

  std::unique_ptr<claim::PgQueueSession> attach_to(const std::string& schema) const {
    return std::make_unique<claim::PgQueueSession>(claim::PgQueueSession::Setup{
        conninfo(schema), {"mailroom"}, "token_insert", schema::require_current_schema});
  }

  TestDatabase database{TestDatabase::Schema::none};
  std::unique_ptr<db::Connection> one = std::make_unique<db::Connection>(conninfo("t1"), "one");
  std::unique_ptr<db::Connection> two = std::make_unique<db::Connection>(conninfo("t2"), "two");
};

}  // namespace

TEST_CASE("the collector of one schema is not shown for the queue of another") {
  Tenants tenants;
  const auto session = tenants.attach_to("t1");
  insert_accounts(*tenants.two, 1);
  CHECK(status::read_queue_status(*tenants.one, "mailroom").collectors.size() == 1);
  const auto status = status::read_queue_status(*tenants.two, "mailroom");
  CHECK(status.collectors.empty());
  CHECK(status.foreign_locks.empty());
  CHECK(health::judge_queue(status, {}).at(0).code == "no_collector");
}

TEST_CASE("a claim does not wait for the queue, a budget or a change of the other schema") {
  Tenants tenants;
  for (auto* connection : {tenants.one.get(), tenants.two.get()})
    set_rate(*connection, "mailroom", 0.001, 100);
  insert_accounts(*tenants.two, 3);
  tenants.one->run("BEGIN");
  tenants.one->run("SELECT mailroom_lock_queue('mailroom')");
  tenants.one->run("SELECT mailroom_allowance('{mailroom}', 1)");
  CHECK(tenants.attach_to("t2")->claim({.limit = 10, .partial = true}).lease);
  CHECK_FALSE(status::read_queue_status(*tenants.two, "mailroom").lock);
  CHECK(status::read_queue_status(*tenants.two, "mailroom").foreign_locks.empty());
  tenants.one->run("COMMIT");
}

TEST_CASE("a batch whose pid is that of a living collector of another schema is taken over") {
  Tenants tenants;
  insert_accounts(*tenants.one, 3);
  auto dying = tenants.attach_to("t1");
  REQUIRE(dying->claim({.limit = 3}).lease);
  dying.reset();
  const auto other = tenants.attach_to("t2");
  const int pid = value<int>(
      *tenants.two, "SELECT pid FROM pg_locks WHERE classid = mailroom_lock_class('collector')::oid");
  tenants.one->run("UPDATE mailroom_batches SET collector = $1", pid);
  const auto reply = tenants.attach_to("t1")->claim({.limit = 3, .take_over = true});
  REQUIRE(reply.lease);
  CHECK(reply.lease->attempt == 2);
}

TEST_CASE("collectors of two schemas emit the tokens of their own, whichever was woken") {
  Tenants tenants;
  TestCollector first(tenants.conninfo("t1"), {"--format", "jsonl", "--batch-timeout", "20ms"});
  TestCollector second(tenants.conninfo("t2"), {"--format", "jsonl", "--batch-timeout", "20ms"});
  REQUIRE(first.connected());
  REQUIRE(second.connected());
  insert_accounts(*tenants.one, 2000, "a");
  insert_accounts(*tenants.two, 20, "b");
  CHECK(eventually([&] { return emitted_ids(first.output()).size() == 2000; }));
  CHECK(eventually([&] { return emitted_ids(second.output()).size() == 20; }));
  CHECK(status::read_queue_status(*tenants.one, "mailroom").collectors.size() == 1);
  CHECK(status::read_queue_status(*tenants.two, "mailroom").collectors.size() == 1);
}

}  // namespace mailroom::test::tenants_test
