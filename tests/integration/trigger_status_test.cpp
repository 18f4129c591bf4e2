// What keeps accounts from getting tokens is a failure of status, by doctor's rules, and its fix ends it.

#include <fmt/format.h>
#include <utility>

#include "base/pattern.hpp"
#include "health/queue_health.hpp"
#include "schema/schema_objects.hpp"
#include "support/doctor_rig.hpp"
#include "support/operator_rig.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::trigger_status_test {
namespace {

/// The findings of status about triggers.
std::vector<health::QueueFinding> found(db::Connection& connection) {
  auto findings = health::judge_queue(status::read_queue_status(connection, "mailroom"), {});
  std::erase_if(findings, [](const health::QueueFinding& finding) {
    return finding.code != "trigger_silent" && finding.code != "replication_role";
  });
  return findings;
}

/// Breaks one thing after another, each of which is one more finding, compares status with doctor, and types
/// the fixes that status prints.
void check_fixing(const TestDatabase& database, const std::vector<std::string>& breaks,
                  health::Severity severity) {
  const auto connection = database.connect();
  const OperatorRig rig(database);
  REQUIRE(found(*connection).empty());
  std::vector<health::QueueFinding> findings;
  for (const auto& break_it : breaks) {
    INFO(break_it);
    connection->run(break_it);
    const auto before = findings.size();
    findings = found(*connection);
    REQUIRE(findings.size() == before + 1);
  }
  const auto reported = DoctorRig(database).examine("triggers");
  REQUIRE(reported.size() == findings.size());
  const auto status = rig.mailroom({"status"});
  CHECK((status.status == 8) == (severity == health::Severity::failure));
  const auto fixes = fixes_in(status.output);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    INFO(findings[i].text);
    CHECK(findings[i].severity == severity);
    CHECK(reported[i].reason == findings[i].text);
    CHECK(std::find(fixes.begin(), fixes.end(), findings[i].fix) != fixes.end());
    CHECK(rig.type(findings[i].fix).status == 0);
  }
  CHECK(found(*database.connect()).empty());
}

}  // namespace

TEST_CASE("status reports each trigger of mailroom that does not fire") {
  const TestDatabase database;
  for (const auto severity : {health::Severity::failure, health::Severity::warning}) {
    for (const auto* how : {"ALTER TABLE {1} DISABLE TRIGGER {0}",
                            "ALTER TABLE {1} ENABLE REPLICA TRIGGER {0}", "DROP TRIGGER {0} ON {1}"}) {
      std::vector<std::string> breaks;
      const auto check = [&] { check_fixing(database, std::exchange(breaks, {}), severity); };
      for (const auto& trigger : schema::expected_triggers()) {
        if (trigger.is_vital != (severity == health::Severity::failure)) continue;
        breaks.push_back(fmt::format(fmt::runtime(how), trigger.name, trigger.table));
        // Status prints six warnings.
        if (breaks.size() == 5) check();
      }
      if (!breaks.empty()) check();
    }
  }
}

TEST_CASE("status reports that no trigger fires, for the database or for a role that inserts accounts") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole application(database, "application");
  const TestRole other(database, "other");
  connection->run("GRANT INSERT (email, login) ON accounts TO " + application.name());
  const auto setting = "SET session_replication_role = 'REPLICA'";
  check_fixing(database, {fmt::format("ALTER DATABASE {} {}", database.name(), setting)},
               health::Severity::failure);
  check_fixing(database, {fmt::format("ALTER ROLE {} {}", application.name(), setting)},
               health::Severity::failure);
  check_fixing(database,
               {fmt::format("ALTER ROLE {} IN DATABASE {} {}", application.name(), database.name(), setting)},
               health::Severity::failure);
  connection->run(fmt::format("ALTER ROLE {} {}", other.name(), setting));
  CHECK(found(*connection).empty());
}

TEST_CASE("a trigger that fires always is as good as one that is enabled") {
  const TestDatabase database;
  const auto connection = database.connect();
  connection->run("ALTER TABLE accounts ENABLE ALWAYS TRIGGER after_account_insert");
  CHECK(found(*connection).empty());
}

TEST_CASE(
    "the statement that audit prints for psql makes a token, and the command of resend sends a scheduled message") {
  const TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig rig(database);
  const auto printed = [](std::string text, const std::string& verb) {
    text = Pattern("\\s+").replaced(text, " ");
    const auto from = text.find(verb);
    REQUIRE(from != std::string::npos);
    return text.substr(from, text.find(';', from) - from + 1);
  };
  connection->run("ALTER TABLE accounts DISABLE TRIGGER after_account_insert");
  insert_accounts(*connection, 1, "late");
  connection->run(
      "SELECT mailroom_send(ARRAY['a@x.example'], subject => 's', text => 't', send_after => now() + interval '1 day')");
  const auto bare = database.connect();
  bare->run("SET search_path = ''");
  bare->run(printed(rig.mailroom({"audit", "id:1"}).output, "INSERT INTO"));
  CHECK(Pattern("\\s+")
            .replaced(rig.mailroom({"resend", "message:1", "--dry-run"}).errors, " ")
            .find("mailroom message reschedule 1 --send-after now") != std::string::npos);
  CHECK(rig.mailroom({"message", "reschedule", "1", "--send-after", "now", "--yes"}).status == 0);
  CHECK(value<int>(*connection, "SELECT released FROM mailroom_release(10)") == 1);
  CHECK(value<int>(*connection, "SELECT count(*) FROM tokens") == 2);
}

TEST_CASE("status fails for messages and accounts that a trigger missed") {
  const TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig rig(database);
  const auto lost = [&] {
    std::string text;
    for (const auto& finding : health::judge_queue(status::read_queue_status(*connection, "mailroom"), {}))
      if (finding.code != "no_collector")
        text +=
            fmt::format("{} {}: {}\n", health::severity_name(finding.severity), finding.code, finding.text);
    return text;
  };
  for (const std::string how : {"DISABLE", "ENABLE"}) {
    connection->run("ALTER TABLE accounts " + how + " TRIGGER after_account_insert");
    connection->run("ALTER TABLE mailroom_messages " + how + " TRIGGER after_message_insert");
    insert_accounts(*connection, 1, how);
    connection->run("SELECT mailroom_send(ARRAY['ann@x.example'], subject => 'a', text => 'a')");
    if (how == "DISABLE") connection->run("INSERT INTO mailroom_messages (action) VALUES ('activation')");
  }
  CHECK(
      lost() ==
      "failure messages_without_token: 1 message of the last day has no token, so nobody mails it: message 1\n"
      "failure accounts_without_token: 1 account of the last day has no token, so nobody mails it\n"
      "warning messages_unfit: 1 message of the last day has no token, and would have been refused: message 2\n");
  connection->run("SELECT mailroom_cancel(2)");
  CHECK(rig.mailroom({"reconcile"}).output.find("without a token: 1 account of the last day; ") !=
        std::string::npos);
  const auto before = rig.mailroom({"status"});
  CHECK(before.status == 8);
  for (const auto& fix : fixes_in(before.output))
    CHECK(rig.type(fix).status == 0);
  CHECK(lost().empty());
  CHECK(value<int>(*connection, "SELECT count(*) FROM tokens WHERE account IS NOT NULL") == 2);
}

TEST_CASE("status looks for lost messages among the newest, whatever the role may read") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole reader(database, "reader");
  connection->run("ALTER TABLE mailroom_messages DISABLE TRIGGER after_message_insert");
  connection->run("SELECT mailroom_send(ARRAY['ann@x.example'], subject => 'a', text => 'a')");
  CHECK(connection->transact(status::read_newest_lost_messages).messages == 1);
  connection->run(fmt::format("GRANT pg_read_all_data TO {}", reader.name()));
  CHECK(db::Connection(reader.conninfo(), "test").transact(status::read_newest_lost_messages).messages == 1);
  connection->run(
      "INSERT INTO mailroom_messages (recipients, subject, text, cancelled_at) "
      "SELECT '{ann@x.example}', 'a', 'a', now() FROM generate_series(1, 10000)");
  CHECK(connection->transact(status::read_newest_lost_messages).messages == 0);
  connection->run(fmt::format("REVOKE pg_read_all_data FROM {}", reader.name()));
  db::Connection stranger(reader.conninfo(), "test");
  CHECK_FALSE(stranger.transact(status::read_newest_lost_messages).is_known);
  CHECK(stranger.transact(status::count_accounts_without_token) == 0);
}

}  // namespace mailroom::test::trigger_status_test
