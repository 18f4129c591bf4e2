// The privileges that a role needs to collect: exactly those that mailroom doctor names.

#include <fmt/format.h>

#include "status/queue_status.hpp"
#include "support/doctor_rig.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::doctor_privilege_test {
namespace {

/// A rolled-back token leaves a gap below the next token, which is emitted.
void emit_one(claim::QueueSession& session, db::Connection& owner, int round) {
  owner.run(
      fmt::format("DO $$ BEGIN INSERT INTO accounts (email, login) VALUES ('x', 'x{}'); RAISE 'no'; "
                  "EXCEPTION WHEN raise_exception THEN NULL; END $$",
                  round));
  insert_accounts(owner, 1, fmt::format("round{}_", round));
  const auto reply = session.claim({.limit = 10, .partial = true, .take_over = true, .publish_cursor = true});
  REQUIRE(reply.lease);
  session.fetch(*reply.lease, [](const claim::TokenRow&) {});
  session.claim({.receipt = claim::Receipt{*reply.lease, {.emitted = 1}}});
}

/// Does everything that a collector does: batches, gaps that open, wait, merge and close, acknowledgements,
/// abandoned batches.
void collect_as(const std::string& conninfo, const TestDatabase& database) {
  const auto owner = database.connect();
  const auto late = database.connect();
  const auto open_session = [&] {
    return std::make_unique<claim::PgQueueSession>(
        claim::PgQueueSession::Setup{conninfo, {"mailroom"}, "token_insert", schema::require_current_schema});
  };
  auto session = open_session();
  late->transact([&](pqxx::work& transaction) {
    db::Connection::execute(transaction, "INSERT INTO accounts (email, login) VALUES ('late', 'late')");
    for (int round = 0; round < 45; ++round)
      emit_one(*session, *owner, round);
  });
  REQUIRE(session->claim({.limit = 10, .partial = true, .take_over = true}).lease);
  // That batch was not acknowledged: another session takes it over.
  session = open_session();
  // The server may take a moment to end the other session.
  std::optional<claim::Lease> abandoned;
  REQUIRE(eventually([&] {
    abandoned = session->claim({.limit = 10, .partial = true, .take_over = true}).lease;
    return abandoned.has_value();
  }));
  session->claim({.receipt = claim::Receipt{*abandoned, {.emitted = 1}}});
}

/// Does what a sender does beyond that: records outcomes, keeps to a rate, shares the state of a relay.
void send_as(const std::string& conninfo, const TestDatabase& database) {
  insert_accounts(*database.connect(), 1, "sent");
  set_rate(*database.connect(), "mailroom", 0.001, 10);
  claim::PgQueueSession session({.conninfo = conninfo,
                                 .queues = {"mailroom"},
                                 .channel = "token_insert",
                                 .check_schema = schema::require_current_schema,
                                 .detail = {.delivers = true}});
  const auto reply = session.claim({.limit = 10, .partial = true, .take_over = true});
  REQUIRE(reply.lease);
  claim::Receipt receipt{*reply.lease, {.emitted = 1}, std::vector<claim::TokenOutcome>{}};
  session.fetch(*reply.lease, [&](const claim::TokenRow& row) {
    receipt.outcomes->push_back({.token = row.id, .attempts = 1});
  });
  session.claim({.limit = 10, .partial = true, .receipt = receipt});
  const auto now = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
  claim::SinkState relay{
      .name = "relay:25", .failures = 1, .since = now, .failed_at = now, .probe_at = now, .reason = "busy"};
  session.share({relay}, {relay.name}, std::nullopt);
  session.share({}, {relay.name}, Milliseconds(1000));
  relay.failures = 0;
  session.share({relay}, {}, std::nullopt);
}

void consume_as(const std::string& conninfo, const TestDatabase& database) {
  collect_as(conninfo, database);
  send_as(conninfo, database);
}

}  // namespace

TEST_CASE("the doctor names each privilege that a role lacks, and a role that has them collects") {
  TestDatabase database;
  const auto connection = database.connect();
  const TestRole role(database);
  connection->run("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC");
  DoctorRig rig(database);
  rig.environment["MAILROOM_DATABASE_URL"] = role.conninfo();
  // A check that the role may not read is omitted, and is no failure of its own.
  CHECK(summary(rig.examine("schema")) == "not checked: permission denied for table schema_migrations");
  CHECK(summary(rig.examine("sequence")).starts_with("not checked: permission denied"));
  const auto findings = rig.examine("privileges");
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
  CHECK(findings[1].verdict == doctor::CheckVerdict::warning);
  CHECK(findings[1].fix == std::vector<std::string>{"GRANT pg_monitor TO " + role.name() + ";"});
  REQUIRE(run_fixes(*connection, findings));
  CHECK(all_fine(rig.examine("privileges")));
  CHECK(all_fine(rig.examine("sequence")));
  consume_as(role.conninfo(), database);
}

TEST_CASE("collect and send need each privilege that the doctor asks for") {
  TestDatabase database;
  const auto connection = database.connect();
  const TestRole role(database);
  DoctorRig rig(database);
  rig.environment["MAILROOM_DATABASE_URL"] = role.conninfo();
  const auto findings = rig.examine("privileges");
  REQUIRE(findings.size() == 2);
  REQUIRE(run_fixes(*connection, findings));
  for (const auto& grant : findings[0].fix) {
    // GRANT SELECT, UPDATE ON jobs TO role;
    if (grant.find('(') != std::string::npos) continue;  // of mailroom_bounces, for metrics
    const auto on = grant.find(" ON ");
    std::istringstream privileges(grant.substr(6, on - 6));
    for (std::string privilege; std::getline(privileges >> std::ws, privilege, ',');) {
      const auto revoke =
          "REVOKE " + privilege + grant.substr(on, grant.find(" TO ") - on) + " FROM " + role.name();
      INFO(revoke);
      connection->run(revoke);
      // Without one of these, a consumer of before goes on, and what it shows has no schedule.
      const bool is_of_schedule = grant.find("mailroom_schedule") != std::string::npos;
      if (is_of_schedule || grant.find("mailroom_release") != std::string::npos ||
          grant.find("mailroom_record_event") != std::string::npos) {
        CHECK_NOTHROW(consume_as(role.conninfo(), database));
        db::Connection as_role(role.conninfo(), "test");
        CHECK(status::read_queue_status(as_role, "mailroom").scheduled.is_known != is_of_schedule);
      } else {
        CHECK_THROWS_AS(consume_as(role.conninfo(), database), db::DatabaseError);
      }
      const auto missing = rig.examine("privileges");
      CHECK(missing[0].verdict == doctor::CheckVerdict::failure);
      CHECK(missing[0].fix.size() == 1);
      REQUIRE(run_fixes(*connection, missing));
      connection->run(
          "TRUNCATE accounts, tokens, mailroom_batches, mailroom_gaps, mailroom_deliveries, mailroom_sinks");
    }
  }
}

TEST_CASE("doctor names who may do everything: members of the owner, and who reads every table") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole boss(database, "boss");
  const DoctorRig rig(database);
  connection->run("GRANT postgres TO " + boss.name());
  CHECK(summary(rig.examine("privileges"))
            .ends_with("members of the owner postgres, who may do everything: " + boss.name()));
  connection->run("REVOKE postgres FROM " + boss.name());
  check_fixing(*connection, rig, "privileges", doctor::CheckVerdict::failure,
               "GRANT pg_write_all_data TO " + boss.name());
  connection->run("GRANT pg_read_all_data TO " + boss.name());
  CHECK(summary(rig.examine("privileges")) ==
        "warning: " + boss.name() +
            " may read every mail and the secrets of tokens, as a member of pg_read_all_data");
}

TEST_CASE("a view by which others read mails or secrets is named, also by way of another") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole support(database, "support");
  const DoctorRig rig(database);
  const auto privileges = [&] { return summary(rig.examine("privileges")); };
  const auto fine = privileges();
  connection->run(
      "CREATE VIEW ids AS SELECT id, reference FROM mailroom_messages; GRANT SELECT ON ids TO PUBLIC");
  connection->run("CREATE VIEW own AS SELECT text FROM mailroom_messages");
  CHECK(privileges() == fine);
  if (value<int>(*connection, "SHOW server_version_num") >= 150000) {
    connection->run(
        "CREATE VIEW checked WITH (security_invoker) AS SELECT text FROM mailroom_messages; "
        "GRANT SELECT ON checked TO PUBLIC");
    CHECK(privileges() == fine);
  }
  connection->run(
      "CREATE MATERIALIZED VIEW \"All Mails\" AS SELECT o.text, t.code FROM own o, tokens t; GRANT SELECT (text) ON \"All Mails\" TO " +
      support.name());
  CHECK(privileges() == "warning: " + support.name() +
                            " may read mailroom_messages and tokens by the view public.\"All Mails\"");
  connection->run("REVOKE SELECT (text) ON \"All Mails\" FROM " + support.name());
  check_fixing(*connection, rig, "privileges", doctor::CheckVerdict::failure,
               "GRANT SELECT ON own TO PUBLIC");
  CHECK(privileges() == fine);
}

TEST_CASE("row security that hides tokens or accounts is found and fixed") {
  TestDatabase database;
  const auto connection = database.connect();
  const TestRole role(database);
  DoctorRig rig(database);
  rig.environment["MAILROOM_DATABASE_URL"] = role.conninfo();
  REQUIRE(run_fixes(*connection, rig.examine("privileges")));
  check_fixing(*connection, rig, "privileges", doctor::CheckVerdict::failure,
               "ALTER TABLE tokens ENABLE ROW LEVEL SECURITY");
}

TEST_CASE("a schema that the role may not use is found and fixed") {
  TestDatabase database;
  const auto connection = database.connect();
  const TestRole role(database);
  DoctorRig rig(database);
  rig.environment["MAILROOM_DATABASE_URL"] = role.conninfo();
  REQUIRE(run_fixes(*connection, rig.examine("privileges")));
  connection->run("REVOKE USAGE ON SCHEMA public FROM PUBLIC");
  const auto findings = rig.examine("schema");
  CHECK(summary(findings) == "failure: the tables are in the schema public, which the role may not use");
  REQUIRE(run_fixes(*connection, findings));
  CHECK(all_fine(rig.examine("schema")));
}

}  // namespace mailroom::test::doctor_privilege_test
