// mailroom doctor in a database with several queues.

#include "support/doctor_rig.hpp"
#include "support/several_queues.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::doctor_queues_test {

TEST_CASE("the doctor checks every queue of collect.queue") {
  TestDatabase database;
  const auto connection = database.connect();
  DoctorRig rig(database);
  CHECK(summary(rig.examine("queue")) == "ok: mailroom has a row in jobs");
  make_queue(*connection, "recovery", recoveries_only);
  rig.environment["MAILROOM_QUEUE_NAME"] = "recovery,mailroom";
  CHECK(summary(rig.examine("queue")) == "ok: recovery, mailroom have a row in jobs");
  drop_queue(*connection, "recovery");
  const auto findings = rig.examine("queue");
  CHECK(summary(findings) == "failure: there is no queue recovery; the queues are: mailroom");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].fix == std::vector<std::string>{"mailroom queue create recovery --action recovery"});
  rig.environment["MAILROOM_QUEUE_NAME"] = "newsletter";
  const auto unknown = rig.examine("queue");
  CHECK(summary(unknown) == "failure: there is no queue newsletter; the queues are: mailroom");
  REQUIRE(unknown.size() == 1);
  // A queue that takes every token would mail each person twice.
  CHECK(unknown[0].fix.empty());
  CHECK(unknown[0].hint == "name one of them in collect.queue, or with --queue");
}

TEST_CASE("the doctor names the queue of a problem, and counts a collector of several queues once") {
  TestDatabase database;
  const auto connection = database.connect();
  make_queue(*connection, "recovery", recoveries_only);
  make_queue(*connection, "activation", activations_only);
  DoctorRig rig(database);
  rig.environment["MAILROOM_QUEUE_NAME"] = "recovery,activation";
  {
    const auto session = attach(database, "activation");
    CHECK(summary(rig.examine("collectors"))
              .starts_with("warning: queue recovery: no connected collector serves this queue"));
  }
  const claim::PgQueueSession both(
      {database.conninfo(), {"recovery", "activation"}, "token_insert", schema::require_current_schema});
  CHECK(eventually([&] { return summary(rig.examine("collectors")) == "ok: 1 is connected"; }));
}

TEST_CASE("the doctor warns of a paused queue, whoever serves it") {
  TestDatabase database;
  const auto connection = database.connect();
  make_queue(*connection, "recovery", recoveries_only);
  pause_queue(*connection, "recovery");
  const DoctorRig rig(database);
  const auto findings = rig.examine("queue");
  CHECK(summary(findings).starts_with(
      "warning: queue recovery: no token is emitted, since the queue has been paused for "));
  CHECK(summary(findings).ends_with(" by ops: relay moves"));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].fix == std::vector<std::string>{"mailroom queue resume recovery"});
  connection->run("SELECT mailroom_set_queue('recovery', $1::jsonb, 'token_insert')", activations_only);
  insert_accounts(*connection, 2);
  CHECK(summary(rig.examine("queue")).starts_with("failure: queue recovery: 2 tokens wait, since "));
  pause_queue(*connection, "recovery", false);
  CHECK(all_fine(rig.examine("queue")));
}

TEST_CASE("the doctor warns of tokens that no queue takes") {
  TestDatabase database;
  const auto connection = database.connect();
  const DoctorRig rig(database);
  connection->run("SELECT mailroom_set_queue('mailroom', $1::jsonb, 'token_insert')", activations_only);
  CHECK(summary(rig.examine("queue")) == "warning: no queue takes recovery tokens: they are not emitted");
  connection->run("SELECT mailroom_send(ARRAY['a@x.example'], template => 't')");
  const auto findings = rig.examine("queue");
  CHECK(summary(findings) ==
        "warning: no queue takes recovery tokens: they are not emitted; "
        "warning: no queue takes message tokens: they are not emitted");
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].fix == std::vector<std::string>{"mailroom queue create recovery --action recovery"});
  CHECK(findings[1].fix == std::vector<std::string>{"mailroom queue create message --action message"});
  make_queue(*connection, "recovery", recoveries_only);
  make_queue(*connection, "message", R"({"actions": ["activation"]})");
  const auto other = rig.examine("queue");
  REQUIRE(other.size() == 1);
  CHECK(other[0].fix == std::vector<std::string>{"mailroom queue set message --action activation,message"});
  connection->run("SELECT mailroom_set_queue('message', '{\"actions\": [\"message\"]}', 'token_insert')");
  CHECK(all_fine(rig.examine("queue")));
}

TEST_CASE("doctor looks at the consumers of every queue, unless queues are named") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("SELECT mailroom_set_queue('mailroom', $1::jsonb, 'token_insert')", activations_only);
  make_queue(*connection, "recovery", recoveries_only);
  insert_accounts(*connection, 1);
  connection->run("UPDATE accounts SET status = 'active'");
  connection->run("INSERT INTO tokens (account, action) SELECT id, 'password_recovery' FROM accounts");
  const auto session = attach(database);
  DoctorRig rig(database);
  const auto findings = rig.examine("collectors");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
  CHECK(findings[0].reason.starts_with(
      "queue recovery: 1 token waits and no connected collector serves this queue"));
  rig.environment["MAILROOM_QUEUE_NAME"] = "mailroom";
  CHECK(summary(rig.examine("collectors")) == "ok: 1 is connected");
}

}  // namespace mailroom::test::doctor_queues_test
