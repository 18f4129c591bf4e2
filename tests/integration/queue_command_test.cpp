// mailroom queue, on a real database and beside a running collector.

#include "base/actor.hpp"
#include "base/json.hpp"
#include "queue/queue_plan.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::queue_command_test {
namespace {

const std::string definitions =
    "SELECT coalesce(string_agg(q::text, ' ' ORDER BY name), '') FROM mailroom_queues q";
const std::string operations = "SELECT count(*) FROM mailroom_operations";

/// Runs a command of queue, which must succeed, with --yes and JSON.
nlohmann::json run_queue(const OperatorRig& person, std::vector<std::string> words) {
  words.insert(words.begin(), "queue");
  words.insert(words.end(), {"--yes", "-o", "json"});
  const auto run = person.mailroom(words);
  INFO(run.errors);
  REQUIRE(run.status == 0);
  return parse_json(run.output);
}

void recover(db::Connection& connection, int account) {
  connection.run("UPDATE tokens SET consumed_at = created_at WHERE account = $1 AND consumed_at IS NULL",
                 account);
  connection.run("INSERT INTO tokens (action, account) VALUES ('password_recovery', $1)", account);
}

/// Notifications of changes of queues.
bool hears_of_queues(db::Connection& listener) {
  return eventually([&] { return listener.take_payloads().count("queues") > 0; });
}

}  // namespace

TEST_CASE("each command changes a queue once, and a repetition changes and records nothing") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig person(database);
  const auto unchanged = [&](const std::vector<std::string>& words, const char* key) {
    const auto before = value<std::string>(*connection, definitions);
    const auto recorded = value<int>(*connection, operations);
    CHECK(run_queue(person, words).at(key) == false);
    CHECK(value<std::string>(*connection, definitions) == before);
    CHECK(value<int>(*connection, operations) == recorded);
  };
  const std::vector<std::string> create{"create", "recovery", "--action", "recovery",      "--priority",
                                        "10",     "--budget", "provider", "--budget-rate", "0.38/s"};
  CHECK(run_queue(person, create).at("carried_out") == true);
  auto again = create;
  again.insert(again.begin(), "queue");
  CHECK(person.mailroom(again).status == 2);
  const std::vector<std::string> set{"set",     "mailroom", "--action", "activation", "--rate",
                                     "1.5/min", "--burst",  "3",        "--budget",   "provider"};
  CHECK(run_queue(person, set).at("carried_out") == true);
  unchanged(set, "carried_out");
  CHECK(value<std::string>(*connection,
                           "SELECT tokens || ' ' || period FROM mailroom_budgets WHERE name = 'provider'") ==
        "38 00:01:40");
  CHECK(run_queue(person, {"show", "mailroom"}).at("rate") ==
        nlohmann::json{{"rate", "1.5/min"}, {"burst", 3}});
  CHECK(run_queue(person, {"pause", "mailroom", "--reason", "a test"}).at("changed") == true);
  unchanged({"pause", "mailroom"}, "changed");
  CHECK(run_queue(person, {"show", "mailroom"}).at("paused").at("reason") == "a test");
  CHECK(run_queue(person, {"resume", "mailroom"}).at("changed") == true);
  unchanged({"resume", "mailroom"}, "changed");
  unchanged({"drop", "recovery", "--dry-run"}, "carried_out");
  CHECK(run_queue(person, {"drop", "recovery"}).at("carried_out") == true);
  CHECK(person.mailroom({"queue", "drop", "recovery", "--yes"}).status == 3);
  CHECK(run_queue(person, create).at("carried_out") == true);
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_operations WHERE kind = 'create queue'") == 2);
}

TEST_CASE("a file is applied once, as a whole or not at all") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig person(database);
  const TemporaryDirectory directory;
  const auto apply = [&](const std::string& text) {
    return person.mailroom({"queue", "apply", directory.write("queues.yaml", text), "--yes"});
  };
  const std::string file =
      "budgets:\n  provider: {rate: 14/s, burst: 50}\nqueues:\n"
      "  mailroom: {actions: [activation, message], budget: provider}\n"
      "  recovery: {actions: [recovery], budget: provider, rate: 2/s}\n";
  REQUIRE(apply(file).status == 0);
  const auto defined = value<std::string>(*connection, definitions);
  const auto recorded = value<int>(*connection, operations);
  CHECK(recorded == 3);
  CHECK(apply(file).output == "nothing to do\n");
  CHECK(value<std::string>(*connection, definitions) == defined);
  CHECK(value<int>(*connection, operations) == recorded);
  // A budget that the queue of this name would need for its own rate.
  CHECK(apply("budgets:\n  second: {rate: 1/s}\nqueues:\n  first: {}\n  second: {rate: 1/s}\n").status == 2);
  CHECK(value<std::string>(*connection, definitions) == defined);
  CHECK(value<int>(*connection, operations) == recorded);
}

TEST_CASE("a plan is refused if the queue has changed since") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto catalogue = queue::read_queues(*connection);
  queue::QueueChange change{.name = "mailroom", .after = {.priority = 5}};
  const auto plan = queue::checked({.queues = {change}}, catalogue);
  const OperatorRig person(database);
  REQUIRE(run_queue(person, {"set", "mailroom", "--priority", "7"}).at("carried_out") == true);
  CHECK_THROWS_AS(queue::carry_out(*connection, plan, {.actor = "tester", .reason = ""}, "token_insert"),
                  Error);
  CHECK(value<int>(*connection, "SELECT priority FROM mailroom_queues") == 7);
}

TEST_CASE("a queue that begins where another is takes over its tokens, late commits included") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig person(database);
  insert_accounts(*connection, 4);
  const auto first = attach(database);
  REQUIRE(drain(*first) == Ids{1, 2, 3, 4});
  for (const int account : {1, 2, 3, 4})
    connection->run("UPDATE tokens SET consumed_at = created_at WHERE account = $1", account);
  const auto late = database.connect();
  late->run("BEGIN");
  late->run("INSERT INTO tokens (action, account) VALUES ('password_recovery', 1)");
  recover(*connection, 2);
  REQUIRE(drain(*first) == Ids{6});
  recover(*connection, 3);
  insert_accounts(*connection, 1, "new");

  const TemporaryDirectory directory;
  const auto file = directory.write("queues.yaml",
                                    "queues:\n  mailroom: {actions: [activation]}\n"
                                    "  recovery: {actions: [recovery], from: 'queue:mailroom'}\n");
  REQUIRE(run_queue(person, {"apply", file}).at("carried_out") == true);
  late->run("COMMIT");
  const auto second = attach(database, "recovery");
  auto recovered = drain(*second);
  std::sort(recovered.begin(), recovered.end());
  CHECK(recovered == Ids{5, 7});
  CHECK(drain(*first) == Ids{8});
}

TEST_CASE("a new queue takes its action over from the queue that takes it, and each token is emitted once") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig person(database);
  insert_accounts(*connection, 4);
  const auto first = attach(database);
  REQUIRE(drain(*first) == Ids{1, 2, 3, 4});
  connection->run("UPDATE tokens SET consumed_at = created_at");
  recover(*connection, 1);
  REQUIRE(drain(*first) == Ids{5});
  recover(*connection, 2);
  insert_accounts(*connection, 1, "new");

  const auto plan = person.mailroom({"queue", "create", "recovery", "--action", "recovery", "--dry-run"});
  REQUIRE(plan.status == 0);
  CHECK(plan.output.find("restart the sender with --queue recovery,mailroom") != std::string::npos);
  REQUIRE(run_queue(person, {"create", "recovery", "--action", "recovery"}).at("carried_out") == true);
  CHECK(value<std::string>(*connection, "SELECT actions FROM mailroom_queues WHERE name = 'mailroom'") ==
        "{activation,message}");
  const auto second = attach(database, "recovery");
  CHECK(drain(*second) == Ids{6});
  CHECK(drain(*first) == Ids{7});
  recover(*connection, 3);
  CHECK(drain(*second) == Ids{8});
  CHECK(drain(*first).empty());
}

TEST_CASE("no queue is created that would mail each person twice, unless a copy is asked for") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig person(database);
  const auto errors_of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"queue", "create"});
    const auto run = person.mailroom(words);
    CHECK(run.status == 2);
    return run.errors;
  };
  CHECK(
      errors_of({"second", "--yes"}) ==
      "mailroom: error: queue mailroom takes activation, message and recovery tokens already: each person would be "
      "mailed twice\nhint: --action recovery takes only those over; --copy creates a queue that emits each token once "
      "more, for another system\n");
  REQUIRE(run_queue(person, {"create", "copy", "--copy"}).at("carried_out") == true);
  CHECK(
      errors_of({"second", "--action", "recovery", "--yes"}) ==
      "mailroom: error: queues copy and mailroom take recovery tokens already: each person would be mailed 3 "
      "times\nhint: --copy creates a queue that emits each token once more, for another system\n");
  CHECK(value<int>(*connection, "SELECT count(*) FROM jobs") == 2);
  // A copy asks, as does any plan by which people are mailed twice.
  CHECK(person.mailroom({"queue", "create", "third", "--copy"}).status == 7);
}

TEST_CASE("the command that a plan prints emits what no queue has emitted, and nothing else") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig person(database);
  insert_accounts(*connection, 4);
  connection->run("UPDATE tokens SET consumed_at = created_at");
  const auto first = attach(database);
  recover(*connection, 1);
  REQUIRE(drain(*first) == Ids{5});
  recover(*connection, 2);
  REQUIRE(run_queue(person, {"create", "recovery", "--action", "recovery", "--copy"}).at("carried_out") ==
          true);
  const auto set = person.mailroom({"queue", "set", "mailroom", "--action", "activation", "--yes"});
  REQUIRE(set.status == 0);
  const std::string command = "resend token:6- --queue recovery --action recovery";
  CHECK(set.output.find(command) != std::string::npos);
  REQUIRE(person.type("mailroom " + command).status == 0);
  CHECK(drain(*attach(database, "recovery")) == Ids{6});
}

TEST_CASE("a queue that takes an action again names what was missed meanwhile, and not what it had emitted") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig person(database);
  insert_accounts(*connection, 4);
  connection->run("UPDATE tokens SET consumed_at = created_at");
  const auto session = attach(database);
  recover(*connection, 1);
  REQUIRE(drain(*session) == Ids{5});
  REQUIRE(person.mailroom({"queue", "set", "mailroom", "--action", "activation", "--yes"}).status == 0);
  recover(*connection, 2);
  insert_accounts(*connection, 1, "new");
  REQUIRE(drain(*session) == Ids{7});
  const auto set = person.mailroom({"queue", "set", "mailroom", "--action", "all", "--yes"});
  REQUIRE(set.status == 0);
  CHECK(set.output.find("1 due recovery token below the cursor") != std::string::npos);
  CHECK(set.output.find("resend token:6- --queue mailroom --action recovery\n") != std::string::npos);
}

TEST_CASE("a pause beside a collector loses nothing, holds no transaction, and its end wakes the collector") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig person(database);
  const auto listener = database.connect();
  listener->listen("token_insert");
  TestCollector collector(database, {"--format", "jsonl", "--batch-timeout", "0s", "--poll-interval", "1h"});
  REQUIRE(collector.connected());
  insert_accounts(*connection, 20, "before");
  REQUIRE(eventually([&] { return emitted_ids(collector.output()).size() == 20; }));
  listener->take_payloads();
  REQUIRE(run_queue(person, {"pause", "mailroom"}).at("changed") == true);
  CHECK(hears_of_queues(*listener));
  insert_accounts(*connection, 20, "meanwhile");
  // A claim that follows the pause gets nothing, whoever asks.
  CHECK_FALSE(attach(database)->claim({.limit = 10, .partial = true}).lease);
  CHECK(eventually([&] {
    return value<int>(*connection,
                      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                      "AND pid <> pg_backend_pid() AND xact_start IS NOT NULL") == 0;
  }));
  CHECK(emitted_ids(collector.output()).size() == 20);
  REQUIRE(run_queue(person, {"resume", "mailroom"}).at("changed") == true);
  CHECK(hears_of_queues(*listener));
  CHECK(eventually([&] { return emitted_ids(collector.output()).size() == 40; }));
  CHECK(collector.stop() == 0);
  for (const auto& [id, times] : emitted_ids(collector.output())) {
    INFO(id);
    CHECK(times == 1);
  }
}

TEST_CASE("the collector of a queue that is dropped stops, and the drop says so before") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig person(database);
  REQUIRE(run_queue(person, {"create", "second", "--copy"}).at("carried_out") == true);
  TestCollector collector(database, {"--queue", "second"});
  REQUIRE(collector.connected());
  const auto plan = run_queue(person, {"drop", "second", "--dry-run"});
  REQUIRE(plan.at("consumers").size() == 1);
  CHECK(
      plan.at("consumers").at(0).get<std::string>().starts_with("mailroom collect " + operator_name() + ":"));
  REQUIRE(run_queue(person, {"drop", "second"}).at("carried_out") == true);
  CHECK(collector.process().wait() == 3);
  CHECK(collector.log().find("unknown queue \"second\"") != std::string::npos);
}

}  // namespace mailroom::test::queue_command_test
