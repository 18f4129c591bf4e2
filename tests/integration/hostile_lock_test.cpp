// A role without any privilege takes the locks of collectors, as any role can take any advisory lock.

#include <fmt/format.h>

#include "health/queue_health.hpp"
#include "support/catch.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::hostile_lock_test {
namespace {

/// A role without any privilege, and its session.
struct Mallory {
  explicit Mallory(const TestDatabase& from) : owner(from.connect()), role(from.name() + "_mallory") {
    owner->run(fmt::format("CREATE ROLE {} LOGIN", role));
    session = std::make_unique<db::Connection>(fmt::format("{} user={}", from.conninfo(), role),
                                               "mailroom collect@somewhere:1");
  }
  ~Mallory() {
    session.reset();
    owner->run(fmt::format("DROP ROLE {}", role));
  }
  Mallory(const Mallory&) = delete;
  Mallory& operator=(const Mallory&) = delete;

  /// `key` is an expression that the owner evaluates.
  void lock(const std::string& key, std::int64_t object) const {
    session->run(
        fmt::format("SELECT pg_advisory_lock({}, {}::integer)", value<int>(*owner, "SELECT " + key), object));
  }

  std::unique_ptr<db::Connection> owner;
  std::string role;
  std::unique_ptr<db::Connection> session;
};

const std::string collector_key = "mailroom_lock_class('collector')";
const std::string queue_key = "mailroom_lock_class('queue')";
const std::string waking_key = "1835100526";
const std::string budget_key = "mailroom_lock_class('budget')";
const std::string serving_key = "mailroom_lock_class('serving')";

std::vector<std::string> codes(db::Connection& connection) {
  std::vector<std::string> found;
  for (const auto& finding : health::judge_queue(status::read_queue_status(connection, "mailroom"), {}))
    found.push_back(finding.code);
  return found;
}

health::QueueFinding foreign_lock(db::Connection& connection) {
  for (const auto& finding : health::judge_queue(status::read_queue_status(connection, "mailroom"), {})) {
    if (finding.code == "foreign_lock") return finding;
  }
  FAIL("no foreign lock is told of");
  return {};
}

/// An abandoned batch. Returns the pid of its dead collector.
int leave_batch(const TestDatabase& database, db::Connection& connection) {
  insert_accounts(connection, 30);
  auto dying = attach(database);
  REQUIRE(dying->claim({.limit = 30}).lease);
  const int pid = value<int>(connection, "SELECT collector FROM mailroom_batches");
  dying.reset();
  REQUIRE(eventually([&] {
    return value<int>(connection, fmt::format("SELECT count(*) FROM pg_locks WHERE pid = {}", pid)) == 0;
  }));
  connection.run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '1 min'");
  return pid;
}

}  // namespace

TEST_CASE("a batch is taken over even if another session locks the pid of its dead collector") {
  TestDatabase database;
  const auto connection = database.connect();
  const Mallory mallory(database);
  const int pid = leave_batch(database, *connection);
  mallory.lock(collector_key, pid);

  const auto finding = foreign_lock(*connection);
  CHECK(finding.text.find(fmt::format("pid {}", mallory.session->backend_pid())) == 0);
  CHECK(finding.text.find(mallory.role) != std::string::npos);
  CHECK(finding.fix == fmt::format("SELECT pg_terminate_backend({});", mallory.session->backend_pid()));

  const TestCollector collector(database.conninfo(), {"--once", "--format", "jsonl"});
  CHECK(eventually([&] { return emitted_ids(collector.output()).size() == 30; }));
}

TEST_CASE("a role that may not claim is no collector, even if it locks its own pid") {
  TestDatabase database;
  const auto connection = database.connect();
  const Mallory mallory(database);
  insert_accounts(*connection, 3);
  mallory.lock(collector_key, mallory.session->backend_pid());
  CHECK(status::read_queue_status(*connection, "mailroom").collectors.empty());
  const auto found = codes(*connection);
  CHECK(std::find(found.begin(), found.end(), "no_collector") != found.end());
  CHECK(std::find(found.begin(), found.end(), "foreign_lock") != found.end());
}

TEST_CASE("a collector whose role claims as another role that it is a member of is a collector") {
  TestDatabase database;
  const auto connection = database.connect();
  const Mallory member(database);
  connection->run(
      fmt::format("ALTER ROLE {0} NOINHERIT; GRANT pg_read_all_data TO {0}; CREATE ROLE {0}_claims; "
                  "GRANT {0}_claims TO {0}; GRANT INSERT ON mailroom_batches TO {0}_claims",
                  member.role));
  member.lock(collector_key, member.session->backend_pid());
  CHECK(status::read_queue_status(*connection, "mailroom").collectors.size() == 1);
  connection->run(fmt::format("DROP OWNED BY {0}_claims; DROP ROLE {0}_claims", member.role));
}

TEST_CASE(
    "a session that holds a lock of a queue, a budget or of waking without being a collector is named") {
  TestDatabase database;
  const auto connection = database.connect();
  const Mallory mallory(database);
  const auto key = GENERATE(queue_key, waking_key, budget_key, serving_key);
  const auto object = key == waking_key ? value<std::int64_t>(*connection, "SELECT 'tokens'::regclass::oid")
                                        : value<std::int64_t>(*connection, "SELECT hashtext('mailroom')");
  CHECK(status::read_queue_status(*connection, "mailroom").foreign_locks.empty());
  mallory.lock(key, object);
  const auto holders = status::read_queue_status(*connection, "mailroom").foreign_locks;
  REQUIRE(holders.size() == 1);
  CHECK(holders[0].pid == mallory.session->backend_pid());
}

TEST_CASE("a collector whose pid is locked by another session reconnects and attaches") {
  TestDatabase database;
  const auto connection = database.connect();
  const Mallory mallory(database);
  auto session = database.connect();
  mallory.lock(collector_key, session->backend_pid());
  try {
    session->run("SELECT mailroom_attach('mailroom')");
    FAIL("it attached");
  } catch (const db::DatabaseError& error) {
    CHECK(error.sqlstate() == "MR006");
    CHECK(std::string(error.what()).find(fmt::format("pid {} holds", mallory.session->backend_pid())) !=
          std::string::npos);
  }
  // The next backends' pids, as long as the system assigns pids in order.
  const int next = session->backend_pid();
  for (int pid = next + 1; pid < next + 4; ++pid)
    mallory.lock(collector_key, pid);
  insert_accounts(*connection, 3);
  const TestCollector collector(database.conninfo(), {"--once", "--format", "jsonl"});
  CHECK(eventually([&] { return emitted_ids(collector.output()).size() == 3; }));
}

}  // namespace mailroom::test::hostile_lock_test
