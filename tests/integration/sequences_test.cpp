// Any of mailroom's sequences is behind its table, as after a switch-over to a logical replica: claims
// refuse, status and doctor notice, one command repairs all, and each token is emitted once.

#include <fmt/format.h>
#include <random>

#include "base/json.hpp"
#include "queue/preconditions.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/several_queues.hpp"
#include "support/test_collector.hpp"
#include "support/test_queue.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::sequences_test {
namespace {

const std::string advice = "mailroom rewind-cursor --fix-sequence";
const std::vector<std::string> tables{"tokens",
                                      "mailroom_batches",
                                      "mailroom_gaps",
                                      "mailroom_operations",
                                      "mailroom_messages",
                                      "mailroom_outcomes",
                                      "mailroom_bounces",
                                      "accounts"};

/// A database in use: batches, of which the old ones are pruned, a gap, an operation.
struct Replica {
  TestDatabase database;
  std::unique_ptr<db::Connection> connection = database.connect();
  OperatorRig rig{database};
  std::unique_ptr<db::Connection> late = database.connect("late");
  std::map<std::string, int> emitted{};  ///< token text to number of emissions
  std::string errors{};

  Replica() {
    insert_accounts(*connection, 40, "early");
    connection->run(
        "SELECT mailroom_send(ARRAY['a@x.example'], template => 't', send_after => now() + interval '1 day')");
    connection->run("INSERT INTO mailroom_outcomes (queue, token, state) VALUES ('mailroom', 1, 'accepted')");
    connection->run(
        "INSERT INTO mailroom_bounces (digest, place, source, kind, reason) VALUES ('x', 1, 'stdin', 'soft', 'system')");
    late->run("BEGIN");
    insert_accounts(*late, 1, "late");
    insert_accounts(*connection, 3, "more");
    REQUIRE(collect() == 0);
    REQUIRE(rig.mailroom({"suspend", "early1", "--reason", "test"}).status == 0);
    connection->run("DELETE FROM mailroom_batches WHERE id < (SELECT max(id) FROM mailroom_batches)");
    insert_accounts(*connection, 3, "waiting");
    late->run("COMMIT");
  }

  int collect() {
    const auto run = rig.mailroom({"collect", "--once", "--format", "jsonl", "--batch-limit", "5"});
    std::istringstream lines(run.output);
    for (std::string line; std::getline(lines, line);) {
      const auto batch = parse_json(line);
      for (const auto& token : batch.at("tokens"))
        ++emitted[token.at("token").get<std::string>()];
    }
    errors = run.errors;
    return run.status;
  }

  bool advises(const std::string& command) const {
    const auto run = rig.mailroom({command});
    const auto fixes = fixes_in(run.output);
    return run.status == 8 && std::find(fixes.begin(), fixes.end(), advice) != fixes.end();
  }

  /// Sets the sequence of `table` back, to the start, the middle, or before its newest id.
  void set_back(const std::string& table, unsigned how) const {
    const auto newest = value<std::int64_t>(*connection, "SELECT max(id) FROM " + table);
    if (how == 0) connection->run(fmt::format("ALTER SEQUENCE {}_id_seq RESTART", table));
    if (how == 1) connection->run(fmt::format("SELECT setval('{}_id_seq', {}, false)", table, newest));
    if (how == 2) connection->run(fmt::format("SELECT setval('{}_id_seq', {})", table, (newest + 1) / 2));
    if (how == 2 && newest == 1) connection->run(fmt::format("ALTER SEQUENCE {}_id_seq RESTART", table));
  }

  void repair() const {
    const auto fixed = rig.type(advice);
    INFO(fixed.output);
    REQUIRE(fixed.status == 0);
  }

  void check_repaired() {
    insert_accounts(*connection, 3, "after");
    REQUIRE(collect() == 0);
    INFO(errors);
    CHECK(emitted.size() == 50);
    CHECK(std::all_of(emitted.begin(), emitted.end(), [](const auto& token) { return token.second == 1; }));
    CHECK_FALSE(advises("status"));
    CHECK_FALSE(advises("doctor"));
    CHECK(rig.type(advice).output.find("nothing to do") != std::string::npos);
    CHECK(rig.mailroom({"suspend", "early2"}).status == 0);
    CHECK(rig.mailroom({"queue", "pause", "mailroom"}).status == 0);
  }
};

}  // namespace

TEST_CASE("whatever sequences are behind, one command repairs them all, and each token is emitted once") {
  std::mt19937 random(GENERATE(1U, 2U, 3U, 4U));
  Replica replica;
  auto order = tables;
  std::shuffle(order.begin(), order.end(), random);
  order.resize(1 + random() % order.size());
  std::string broken;
  for (const auto& table : order) {
    const auto how = static_cast<unsigned>(random() % 3);
    broken += fmt::format("{} {}, ", table, how);
    replica.set_back(table, how);
  }
  CAPTURE(broken);
  if (order == std::vector<std::string>{"accounts"}) {
    CHECK(replica.rig.mailroom({"doctor"}).output.find("warning      sequence       accounts_id_seq") !=
          std::string::npos);
  } else {
    CHECK(replica.advises("doctor"));
  }
  for (int i = 0; i < 3; ++i) {
    if (replica.collect() != 0) CHECK(replica.errors.find(advice) != std::string::npos);
  }
  replica.repair();
  replica.check_repaired();
}

TEST_CASE("status has a line with the fix for each sequence of the schema that is behind its table") {
  const Replica replica;
  auto& connection = *replica.connection;
  const auto owners = connection.run(
      "SELECT d.refobjid::regclass::text, c.relname FROM pg_class c JOIN pg_depend d ON d.objid = c.oid "
      "WHERE c.relkind = 'S' AND c.relnamespace = 'public'::regnamespace AND d.deptype IN ('a', 'i') ORDER BY 1");
  REQUIRE(static_cast<std::size_t>(owners.size()) == tables.size() + 1);
  for (const auto& row : owners) {
    const std::string table = row[0].c_str();
    const std::string sequence = row[1].c_str();
    CAPTURE(table);
    const auto before = value<std::int64_t>(connection, "SELECT last_value FROM " + sequence);
    const auto newest = value<std::int64_t>(connection, "SELECT coalesce(max(id), 0) FROM " + table);
    REQUIRE(newest > 0);
    connection.run(fmt::format("ALTER SEQUENCE {} RESTART", sequence));
    const auto status = replica.rig.mailroom({"status"});
    const std::string severity = table == "accounts" ? "warning: " : "failure: ";
    CHECK(status.output.find(severity + sequence + " is at 0, behind ") != std::string::npos);
    const auto fixes = fixes_in(status.output);
    CHECK(std::find(fixes.begin(), fixes.end(), advice) != fixes.end());
    const auto doctor = replica.rig.mailroom({"doctor", "-o", "json"});
    CHECK(doctor.output.find(sequence + " is at 0, behind the newest id of " + table) != std::string::npos);
    CHECK(doctor.output.find(advice) != std::string::npos);
    connection.run(fmt::format("SELECT setval('{}', {})", sequence, std::max(before, newest)));
  }
  CHECK_FALSE(replica.advises("status"));
}

TEST_CASE("the claim of a queue whose sequence of batches is behind is refused, and takes nothing twice") {
  Replica replica;
  replica.connection->run("SELECT setval('mailroom_batches_id_seq', 1)");
  const auto before = replica.emitted;
  for (int i = 0; i < 3; ++i) {
    CHECK(replica.collect() == 1);
    CHECK(replica.errors.find("mailroom_batches_id_seq is at ") != std::string::npos);
    CHECK(replica.errors.find("hint: run " + advice) != std::string::npos);
  }
  CHECK(replica.emitted == before);
  CHECK(replica.advises("status"));
  replica.repair();
  replica.check_repaired();
}

TEST_CASE("a batch that was written before its sequence fell behind is acknowledged all the same") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const auto session = attach(database);
  const auto first = session->claim({.limit = 1});
  REQUIRE(first.lease);
  connection->run(
      "INSERT INTO mailroom_batches (queue, ids, collector, emitted_at, cursor, open_from, gap_ids) "
      "SELECT 'other', '{}', 0, now(), 0, 1, '{}' FROM generate_series(1, 9)");
  connection->run("ALTER SEQUENCE mailroom_batches_id_seq RESTART");
  const claim::Receipt receipt{*first.lease, {.emitted = 1}};
  CHECK_THROWS_AS(session->claim({.limit = 1, .receipt = receipt}), db::DatabaseError);
  session->claim({.limit = 0, .receipt = receipt});
  CHECK(value<bool>(*connection,
                    "SELECT emitted_at IS NOT NULL FROM mailroom_batches WHERE queue = 'mailroom'"));
}

TEST_CASE("an id of a gap that a queue still lists is not given to another queue's gap") {
  TestDatabase database;
  const auto connection = database.connect();
  make_queue(*connection, "second", activations_only);
  connection->run(
      "INSERT INTO mailroom_batches (queue, ids, collector, emitted_at, cursor, open_from, gap_ids) "
      "SELECT 'mailroom', '{}', 0, now(), 0, 1, '{7}'");
  insert_accounts(*connection, 2);
  connection->run("DELETE FROM tokens WHERE id = 1");
  connection->run("SELECT setval('mailroom_gaps_id_seq', 4)");
  const auto session = attach(database, "second");
  std::string refusal;
  try {
    session->claim({.queue = "second", .limit = 1});
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  CHECK(refusal.find("mailroom_gaps_id_seq is at 6, behind the newest id of mailroom_gaps, 7") !=
        std::string::npos);
  const auto behind =
      connection->transact([](pqxx::work& transaction) { return queue::read_sequences(transaction); });
  CHECK(std::count_if(behind.begin(), behind.end(),
                      [](const auto& s) { return s.table == "mailroom_gaps" && s.is_behind(); }) == 1);
}

TEST_CASE("a collector refuses a sequence of batches that caches ids, with the statement that fixes it") {
  Replica replica;
  replica.connection->run("ALTER SEQUENCE mailroom_batches_id_seq CACHE 20");
  CHECK(replica.collect() == 5);
  const auto at = replica.errors.find("hint: ALTER SEQUENCE public.mailroom_batches_id_seq");
  REQUIRE(at != std::string::npos);
  const auto fix = replica.errors.substr(at + 6);
  CHECK(replica.rig.type(fix.substr(0, fix.find('\n'))).status == 0);
  replica.repair();
  replica.check_repaired();
}

TEST_CASE("migrate sets the sequence of its history ahead by itself") {
  TestDatabase database;
  const auto connection = database.connect();
  OperatorRig rig(database);
  connection->run("ALTER SEQUENCE mailroom_schema_history_id_seq RESTART");
  CHECK(rig.mailroom({"migrate", "down", "1", "--yes"}).status == 0);
  CHECK(rig.mailroom({"migrate"}).status == 0);
}

TEST_CASE("a role that may only use the sequence of batches sees that it is behind") {
  const TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  TestCollector collector(database, {"--once", "--format", "jsonl"});
  REQUIRE(collector.process().wait() == 0);
  const TestRole user(database, "user");
  connection->run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + user.name());
  connection->run("GRANT USAGE ON SEQUENCE mailroom_batches_id_seq TO " + user.name());
  const auto behind = [&] {
    db::Connection session(user.conninfo(), "test");
    bool is_behind = false;
    session.transact([&](pqxx::work& transaction) {
      const auto sequences = queue::read_sequences(transaction);
      REQUIRE(sequences.size() == 1);
      CHECK(sequences[0].name == "mailroom_batches_id_seq");
      is_behind = sequences[0].is_behind();
    });
    return is_behind;
  };
  CHECK_FALSE(behind());
  connection->run("ALTER SEQUENCE mailroom_batches_id_seq RESTART");
  CHECK(behind());
}

}  // namespace mailroom::test::sequences_test
