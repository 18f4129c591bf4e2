// What status reads of several queues: their definitions, which collectors serve them, and what holds them.

#include "health/queue_health.hpp"
#include "status/queue_status.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/several_queues.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::status_queues_test {
namespace {

std::vector<std::string> codes(const status::QueueStatus& status, const health::HealthLimits& limits = {}) {
  std::vector<std::string> found;
  for (const auto& finding : health::judge_queue(status, limits))
    found.push_back(std::string(health::severity_name(finding.severity)) + " " + finding.code);
  return found;
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_CASE("status reads what a queue takes, its priority and its budgets") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto defaults = status::read_queue_status(*connection, "mailroom").record;
  CHECK(defaults.properties.actions.empty());
  CHECK(defaults.properties.priority == 0);
  CHECK(defaults.budgets.empty());
  CHECK_FALSE(defaults.pause);

  connection->run(
      R"(SELECT mailroom_set_budget('relay', '{"tokens": 2, "milliseconds": 3600000, "burst": 5}', 'c'))");
  make_queue(*connection, "recovery", R"({"actions": ["password_recovery"], "priority": 7, "budget": "relay",
    "rate": {"tokens": 14, "milliseconds": 1000, "burst": 10}})");
  const auto record = status::read_queue_status(*connection, "recovery").record;
  CHECK(record.properties.actions == std::vector<std::string>{"password_recovery"});
  CHECK(record.properties.priority == 7);
  REQUIRE(record.budgets.size() == 2);
  CHECK(record.budgets[0].name == "recovery");
  CHECK(record.budgets[0].paced.rate == config::Rate{14, Milliseconds{1000}});
  CHECK(record.budgets[0].left() == 10);
  CHECK(record.budgets[1].name == "relay");
  CHECK(record.budgets[1].left() == 5);
  CHECK(record.wait_for(1) == Milliseconds{0});

  // Four of five were taken: one is left, and all five again after two hours.
  connection->run("SELECT mailroom_debit('{relay}', 4)");
  const auto taken = status::read_queue_status(*connection, "recovery").record;
  CHECK(taken.budgets[1].left() == 1);
  CHECK(taken.wait_for(1) == Milliseconds{0});
  CHECK(taken.wait_for(5) > std::chrono::hours(1));
  CHECK(taken.wait_for(5) <= std::chrono::hours(2));
  CHECK(taken.wait_for(1000) <= std::chrono::hours(2));
}

TEST_CASE("a collector belongs to each queue that it serves, and to no other") {
  TestDatabase database;
  const auto connection = database.connect();
  make_queue(*connection, "recovery", recoveries_only);
  make_queue(*connection, "activation", activations_only);
  const auto one = attach(database, "recovery");
  const claim::PgQueueSession two(
      {database.conninfo(), {"recovery", "activation"}, "token_insert", schema::require_current_schema});
  const auto recovery = status::read_queue_status(*connection, "recovery").collectors;
  REQUIRE(recovery.size() == 2);
  CHECK(recovery[0].queue == "recovery");
  CHECK(recovery[1].queue == "recovery");
  CHECK(status::read_queue_status(*connection, "activation").collectors.size() == 1);
  CHECK(status::read_queue_status(*connection, "mailroom").collectors.empty());
  CHECK(status::read_queue_status(*connection, "mailroom").elsewhere.size() == 2);
  CHECK_THROWS_AS(status::read_queue_status(*connection, "third"), db::DatabaseError);
}

TEST_CASE("a session that hides which queue a collector serves is named, and the collector still counts") {
  TestDatabase database;
  const auto connection = database.connect();
  make_queue(*connection, "recovery", recoveries_only);
  const auto other = database.connect("other");
  other->run("SELECT pg_advisory_lock(mailroom_lock_class('serving'), hashtext('recovery'))");
  const auto session = attach(database, "recovery");
  const auto collectors = status::read_queue_status(*connection, "recovery").collectors;
  REQUIRE(collectors.size() == 1);
  CHECK_FALSE(collectors[0].queue);
}

TEST_CASE("a paused queue is a failure while tokens wait, and its fix names the queue") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  auto session = attach(database);
  REQUIRE(session->claim({.limit = 2}).lease);
  session.reset();
  CHECK(eventually([&] { return status::read_queue_status(*connection, "mailroom").collectors.empty(); }));
  connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '5 minutes'");
  CHECK(codes(status::read_queue_status(*connection, "mailroom")) == Codes{"failure no_collector"});

  pause_queue(*connection, "mailroom");
  auto status = status::read_queue_status(*connection, "mailroom");
  REQUIRE(status.record.pause);
  CHECK(status.record.pause->actor == "ops");
  CHECK(status.record.pause->reason == "relay moves");
  CHECK(codes(status) == Codes{"failure paused", "warning no_collector"});
  const auto finding = health::judge_queue(status, {}).front();
  CHECK(finding.text.ends_with(" by ops: relay moves"));
  CHECK(finding.fix == "mailroom queue resume mailroom");
  const auto collector = attach(database);
  CHECK(codes(status::read_queue_status(*connection, "mailroom")) == Codes{"failure paused"});

  pause_queue(*connection, "mailroom", false);
  status = status::read_queue_status(*connection, "mailroom");
  CHECK_FALSE(status.record.pause);
  CHECK(codes(status) == Codes{"failure batch_left"});
}

TEST_CASE("an abandoned batch that waits for its budget is no failure") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  set_rate(*connection, "mailroom", 3600, 3);
  auto session = attach(database);
  REQUIRE(session->claim({.limit = 3}).lease);
  session.reset();
  CHECK(eventually([&] { return status::read_queue_status(*connection, "mailroom").collectors.empty(); }));
  connection->run("UPDATE mailroom_batches SET claimed_at = claimed_at - interval '5 minutes'");
  const auto collector = attach(database);
  auto status = status::read_queue_status(*connection, "mailroom");
  CHECK(codes(status).empty());
  CHECK(status.record.wait_for(1) > std::chrono::minutes(50));
  connection->run("UPDATE mailroom_budgets SET taken_until = '-infinity'");
  CHECK(codes(status::read_queue_status(*connection, "mailroom")) == Codes{"failure batch_left"});
}

TEST_CASE("tokens of a queue that was dropped are a failure, whose fix mails those since then") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("SELECT mailroom_set_queue('mailroom', $1::jsonb, 'token_insert')", activations_only);
  make_queue(*connection, "recovery", recoveries_only);
  insert_accounts(*connection, 2);
  connection->run("UPDATE accounts SET status = 'active'");
  const auto ask = [&](int account) {
    connection->run("INSERT INTO tokens (account, action) VALUES ($1, 'password_recovery')", account);
  };
  ask(1);
  connection->run("UPDATE tokens SET created_at = created_at - 60");
  drop_queue(*connection, "recovery");
  CHECK(status::read_queue_status(*connection, "mailroom").untaken.front().tokens == 0);
  ask(2);
  const auto findings = health::judge_queue(status::read_queue_status(*connection, "mailroom"), {});
  const auto untaken = std::ranges::find(findings, "untaken", &health::QueueFinding::code);
  REQUIRE(untaken != findings.end());
  CHECK(untaken->severity == health::Severity::failure);
  CHECK(untaken->text ==
        "no queue takes recovery tokens: 1 waits and is not emitted, since their queue was dropped");
  const std::string program = "mailroom";
  REQUIRE(untaken->fix.starts_with(program));
  const auto typed = mailroom_binary + untaken->fix.substr(program.size()) + " --yes";
  const auto run = run_to_end({"/bin/sh", "-c", typed}, {{"MAILROOM_DATABASE_URL", database.conninfo()}});
  INFO(run.output << run.errors);
  CHECK(run.status == 0);
  CHECK(status::read_queue_status(*connection, "mailroom").untaken.empty());
  CHECK(status::read_queue_status(*connection, "recovery").pending.waiting == 1);
  // Whoever takes the action and gives it up may have mailed what is there.
  drop_queue(*connection, "recovery");
  connection->run("SELECT mailroom_set_queue('mailroom', '{\"actions\": null}', 'token_insert')");
  ask(1);
  CHECK(drain(*attach(database)).size() == 3);
  connection->run("SELECT mailroom_set_queue('mailroom', $1::jsonb, 'token_insert')", activations_only);
  const auto given_up =
      health::judge_untaken(status::read_queue_status(*connection, "mailroom").untaken.at(0));
  CHECK(given_up.severity == health::Severity::warning);
  CHECK(given_up.fix == "mailroom queue create recovery --action recovery");
}

TEST_CASE("all queues are shown by priority and name, unless collect.queue names some") {
  TestDatabase database;
  const auto connection = database.connect();
  make_queue(*connection, "recovery", recoveries_only);
  make_queue(*connection, "activation", activations_only);
  make_queue(*connection, "old", "{}");
  drop_queue(*connection, "old");
  CHECK(status::shown_queues(*connection, config::load_settings({}, {}, config::FileUse::ignored)) ==
        std::vector<std::string>{"recovery", "activation", "mailroom"});
  CHECK(status::shown_queues(*connection, config::load_settings({}, {{"MAILROOM_QUEUE_NAME", "b,a"}},
                                                                config::FileUse::ignored)) ==
        std::vector<std::string>{"b", "a"});
  connection->run("DELETE FROM jobs");
  CHECK(status::shown_queues(*connection, config::load_settings({}, {}, config::FileUse::ignored)) ==
        std::vector<std::string>{"mailroom"});
}

}  // namespace mailroom::test::status_queues_test
