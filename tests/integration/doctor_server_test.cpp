// Settings of the whole server affect its other users, so this test runs alone on the server.

#include <fmt/format.h>
#include <future>

#include "base/actor.hpp"
#include "health/queue_health.hpp"
#include "support/doctor_rig.hpp"
#include "support/operator_rig.hpp"

namespace mailroom::test::doctor_server_test {

TEST_CASE("a server that loses commits or does not vacuum is found and fixed") {
  TestDatabase database;
  const auto connection = database.connect();
  const DoctorRig rig(database);
  const auto eventually_set = [&](const std::string& setting, const std::string& wanted) {
    return eventually([&] {
      return value<std::string>(*database.connect(), "SELECT current_setting('" + setting + "')") == wanted;
    });
  };
  for (const std::string setting : {"fsync", "autovacuum"}) {
    INFO(setting);
    connection->run("ALTER SYSTEM SET " + setting + " = off");
    connection->run("SELECT pg_reload_conf()");
    REQUIRE(eventually_set(setting, "off"));
    auto findings = rig.examine("settings");
    std::erase_if(findings,
                  [&](const doctor::Finding& finding) { return !finding.reason.starts_with(setting); });
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].verdict == doctor::CheckVerdict::warning);
    CHECK(findings[0].fix ==
          std::vector<std::string>{"ALTER SYSTEM SET " + setting + " = on;", "SELECT pg_reload_conf();"});
    REQUIRE(run_fixes(*connection, findings));
    REQUIRE(eventually_set(setting, "on"));
  }
  CHECK(all_fine(rig.examine("settings")));
  connection->run("ALTER SYSTEM RESET ALL");
  connection->run("SELECT pg_reload_conf()");
}

TEST_CASE("a listener that holds the queue of notifications back is named, and ending it empties the queue") {
  TestDatabase database;
  TestDatabase other(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const DoctorRig rig(database);
  REQUIRE(all_fine(rig.examine("channel")));
  const auto listener = other.connect("forgotten");
  listener->run("LISTEN other");
  listener->run("BEGIN");
  listener->run("SELECT 1");
  // A little more than 1 % of 8 GB.
  other.connect()->run(
      "DO $$ BEGIN FOR i IN 1..12000 LOOP PERFORM pg_notify('other', i || repeat('x', 7900)); END LOOP; END $$");
  const auto held = fmt::format("pid {} (forgotten", listener->backend_pid());
  const auto findings = rig.examine("channel");
  INFO(summary(findings));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::warning);
  CHECK(findings[0].reason.find(held) != std::string::npos);
  const OperatorRig operators(database);
  CHECK(operators.mailroom({"status"}).output.find(held) != std::string::npos);
  for (const auto& fix : findings[0].fix)
    CHECK(operators.type(fix).status == 0);
  CHECK(eventually([&] { return all_fine(rig.examine("channel")); }));
}

TEST_CASE("a collector that waits for a synchronous standby is found, and the fix lets it go on") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig operators(database);
  TestCollector collector(database, {});
  REQUIRE(collector.connected());
  connection->run("ALTER SYSTEM SET synchronous_standby_names = 'gone'");
  connection->run("SELECT pg_reload_conf()");
  REQUIRE(eventually([&] {
    return value<std::string>(*database.connect(), "SELECT current_setting('synchronous_standby_names')") ==
           "gone";
  }));
  connection->run("SET synchronous_commit = local");
  insert_accounts(*connection, 1);
  health::HealthLimits limits;
  limits.lock_held = Milliseconds(300);
  std::vector<health::QueueFinding> found;
  REQUIRE(eventually([&] {
    found = health::judge_queue(status::read_queue_status(*connection, "mailroom"), limits);
    return !found.empty() && found.front().code == "standby_awaited";
  }));
  CHECK(found.size() == 1);
  // An application's commit would wait in the same way, whoever looks at it.
  const auto longest = status::read_queue_status(*connection, "mailroom").longest_commit;
  REQUIRE(longest);
  CHECK(longest->application.starts_with("mailroom collect " + operator_name() + ":"));
  const std::string awaited = "waiting for a synchronous standby, which has not confirmed the commit";
  REQUIRE(eventually([&] { return count(collector.log(), awaited) == 1; }));
  CHECK(count(collector.log(), "the wait is over") == 0);
  std::istringstream fixes(found.front().fix);
  for (std::string fix; std::getline(fixes, fix);)
    CHECK(operators.type(fix).status == 0);
  CHECK(eventually([&] { return count(collector.log(), "the wait is over") == 1; }));
  CHECK(count(collector.log(), awaited) == 1);
  CHECK(eventually([&] {
    return value<int>(*connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NOT NULL") == 1;
  }));
  CHECK(collector.stop() == 0);
  connection->run("ALTER SYSTEM RESET ALL");
  connection->run("SELECT pg_reload_conf()");
}

TEST_CASE("doctor names the standby where the commit of another notification waits for it") {
  TestDatabase database;
  TestDatabase other(TestDatabase::Schema::none);
  const auto connection = database.connect();
  connection->run("ALTER SYSTEM SET synchronous_standby_names = 'gone'");
  connection->run("SELECT pg_reload_conf()");
  REQUIRE(eventually([&] {
    return value<std::string>(*database.connect(), "SELECT current_setting('synchronous_standby_names')") ==
           "gone";
  }));
  const DoctorRig rig(database);
  CHECK(all_fine(rig.examine("channel")));
  auto waiting = std::async(std::launch::async, [&] {
    other.connect("signup")->run(
        "DO $$ BEGIN CREATE TABLE written (); PERFORM pg_notify('other', ''); END $$");
  });
  REQUIRE(eventually(
      [&] { return !connection->run("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'").empty(); }));
  const auto findings = rig.examine("channel");
  INFO(summary(findings));
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
  CHECK(findings[0].reason.find("(signup") != std::string::npos);
  CHECK(findings[0].reason.find("for a synchronous standby to confirm its commit") != std::string::npos);
  const OperatorRig operators(database);
  for (const auto& fix : findings[0].fix)
    CHECK(operators.type(fix).status == 0);
  waiting.get();
  CHECK(all_fine(rig.examine("channel")));
  connection->run("ALTER SYSTEM RESET ALL");
  connection->run("SELECT pg_reload_conf()");
}

TEST_CASE("triggers that fire for no role, or nowhere on the server, are a failure of status") {
  TestDatabase database;
  const OperatorRig operators(database);
  for (const std::string break_it : {"ALTER ROLE ALL SET session_replication_role = replica",
                                     "ALTER SYSTEM SET session_replication_role = replica"}) {
    INFO(break_it);
    const auto connection = database.connect();
    connection->run(break_it);
    connection->run("SELECT pg_reload_conf()");
    REQUIRE(eventually([&] {
      return value<std::string>(*database.connect(), "SHOW session_replication_role") == "replica";
    }));
    const auto status = operators.mailroom({"status"});
    CHECK(status.status == 8);
    CHECK(status.output.find("session_replication_role is replica for ") != std::string::npos);
    for (const auto& fix : fixes_in(status.output))
      CHECK(operators.type(fix).status == 0);
    CHECK(eventually([&] { return operators.mailroom({"status"}).status == 0; }));
  }
}

}  // namespace mailroom::test::doctor_server_test
