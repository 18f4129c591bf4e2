// What the doctor learns by inserting an account as the application does, and who else could create tokens.

#include "schema/configured_schema.hpp"
#include "support/catch.hpp"
#include "support/doctor_rig.hpp"
#include "support/test_database.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::doctor_insert_test {

TEST_CASE("doctor inserts an account as the application does, and leaves none") {
  const TestDatabase database;
  const auto connection = database.connect();
  DoctorRig rig(database);
  CHECK(summary(rig.examine("insert")) ==
        "ok: an account inserted as postgres gets its activation token; rolled back");
  CHECK(value<int>(*connection, "SELECT count(*) FROM accounts") == 0);
  CHECK(value<int>(*connection, "SELECT count(*) FROM tokens") == 0);
}

TEST_CASE("doctor says what the application's role and the owner of the tables lack") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole application(database, "web");
  DoctorRig rig(database);
  rig.application_role = application.name();
  CHECK(summary(rig.examine("insert")) ==
        "failure: " + application.name() + " may neither call mailroom_send() nor insert accounts");
  connection->run("GRANT INSERT (email, login), SELECT (id) ON accounts TO " + application.name());
  auto findings = rig.examine("insert");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
  CHECK(findings[0].reason.find("permission denied for sequence accounts_id_seq") != std::string::npos);
  connection->run("GRANT USAGE ON SEQUENCE accounts_id_seq TO " + application.name());
  CHECK(all_fine(rig.examine("insert")));

  // As on a host where pgcrypto belongs to the superuser, and the tables do not.
  const TestRole owner(database, "owner");
  connection->run("ALTER TABLE tokens OWNER TO " + owner.name());
  connection->run("ALTER FUNCTION trg_after_account_insert() OWNER TO " + owner.name());
  connection->run("GRANT ALL ON ALL TABLES IN SCHEMA public TO " + owner.name());
  CHECK(all_fine(rig.examine("insert")));
  connection->run("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC");
  findings = rig.examine("insert");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
  CHECK(run_fixes(*connection, findings));
  CHECK(summary(rig.examine("insert")) ==
        "ok: an account inserted as " + application.name() + " gets its activation token; rolled back");
}

TEST_CASE("doctor asks as a role in a schema whose name has capitals and blanks") {
  const TestDatabase database(TestDatabase::Schema::none);
  const TestRole application(database, "web");
  db::Connection owner({database.conninfo(), "My Mail"}, "test");
  schema::create_configured_schema(owner);
  migrate(owner);
  DoctorRig rig(database);
  rig.environment["MAILROOM_DATABASE_SCHEMA"] = "My Mail";
  rig.application_role = application.name();
  const auto findings = rig.examine("insert");
  REQUIRE_FALSE(findings.empty());
  CHECK(findings[0].reason == application.name() + " may not use the schema My Mail");
  REQUIRE(run_fixes(owner, findings));
  CHECK(summary(rig.examine("insert")) ==
        "ok: a message asked for as " + application.name() + " gets its token; rolled back");
}

TEST_CASE("a role that the session cannot take on is named, with the grant") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole reader(database, "reader");
  const TestRole application(database, "web");
  connection->run("GRANT pg_read_all_data TO " + reader.name());
  DoctorRig rig(database);
  rig.environment["MAILROOM_DATABASE_URL"] = reader.conninfo();
  rig.application_role = "nobody of that name";
  CHECK(summary(rig.examine("insert")) == "failure: there is no role nobody of that name");
  rig.application_role = application.name();
  const auto findings = rig.examine("insert");
  CHECK(summary(findings) == "failure: " + reader.name() + " may not take on the role " + application.name());
  CHECK(run_fixes(*connection, findings));
  // Each obstacle is named with its fix, one after the other.
  connection->run("REVOKE ALL ON accounts FROM " + application.name());
  connection->run("REVOKE USAGE ON SCHEMA public FROM PUBLIC");
  connection->run("GRANT USAGE ON SEQUENCE accounts_id_seq TO " + application.name());
  connection->run("ALTER ROLE " + application.name() + " SET default_transaction_read_only = on");
  const auto obstacles = rig.examine("insert");
  CHECK(summary(obstacles) ==
        "failure: " + application.name() + " may not use the schema public; failure: " + application.name() +
            " may neither call mailroom_send() nor insert accounts; failure: transactions of " +
            application.name() + " are read-only by default");
  CHECK(run_fixes(*database.connect(), obstacles));
  CHECK(summary(rig.examine("insert")) ==
        "ok: a message asked for as " + application.name() + " gets its token; rolled back");
}

TEST_CASE("doctor asks for a message as an application does that has no accounts, and leaves none") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole shop(database, "shop");
  DoctorRig rig(database);
  rig.application_role = shop.name();
  const auto role = shop.name();
  CHECK(run_fixes(*connection, rig.examine("insert")));
  CHECK(summary(rig.examine("insert")) ==
        "ok: a message asked for as " + role + " gets its token; rolled back");
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_messages") == 0);
  INFO("with accounts too");
  connection->run("GRANT INSERT (email, login) ON accounts TO " + role);
  connection->run("GRANT USAGE ON SEQUENCE accounts_id_seq TO " + role);
  CHECK(summary(rig.examine("insert")) ==
        "ok: an account inserted as " + role +
            " gets its activation token; rolled back; ok: a message asked for as " + role +
            " gets its token; rolled back");
  INFO("what is refused is told with the words of the server");
  connection->run("ALTER FUNCTION mailroom_send RENAME TO mailroom_sent");
  CHECK(summary(rig.examine("insert")) ==
        "ok: an account inserted as " + role + " gets its activation token; rolled back");
  connection->run("REVOKE INSERT (email, login) ON accounts FROM " + role);
  const auto without_function = rig.examine("insert");
  REQUIRE(without_function.size() == 1);
  CHECK(without_function[0].verdict == doctor::CheckVerdict::failure);
  CHECK(without_function[0].fix.empty());
  connection->run("ALTER FUNCTION mailroom_sent RENAME TO mailroom_send");
  connection->run("ALTER TABLE mailroom_messages DISABLE TRIGGER after_message_insert");
  CHECK(summary(rig.examine("insert")) == "failure: a message asked for as " + role + " gets no token");
  connection->run("ALTER TABLE mailroom_messages ENABLE TRIGGER after_message_insert");
  connection->run("UPDATE mailroom_actions SET producer = 'pg_monitor' WHERE action = 'message'");
  const auto findings = rig.examine("insert");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
  CHECK(findings[0].reason.find("may not send messages of the action \"message\"") != std::string::npos);
}

TEST_CASE("sessions in which no trigger fires are found, and accounts without a token") {
  const TestDatabase database;
  const auto connection = database.connect();
  DoctorRig rig(database);
  const TestRole importer(database, "importer");
  connection->run("ALTER ROLE " + importer.name() + " SET session_replication_role = replica");
  INFO("a role that may not insert accounts");
  CHECK(all_fine(rig.examine("triggers")));
  connection->run("ALTER ROLE " + importer.name() + " RESET session_replication_role");
  connection->run("GRANT INSERT (email) ON accounts TO " + importer.name());
  for (const auto& whose : {"DATABASE " + database.name(), "ROLE " + importer.name(),
                            "ROLE " + importer.name() + " IN DATABASE " + database.name()}) {
    CAPTURE(whose);
    connection->run("ALTER " + whose + " SET session_replication_role = replica");
    const auto findings = rig.examine("triggers");
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
    CHECK(run_fixes(*connection, findings));
    CHECK(all_fine(rig.examine("triggers")));
  }
  connection->run("ALTER DATABASE " + database.name() + " SET session_replication_role = replica");
  insert_accounts(*database.connect(), 3);
  CHECK(summary(rig.examine("insert")) ==
        "failure: an account inserted as postgres gets no activation token; "
        "failure: 3 accounts of the last day have no token, so nobody mails them");
  connection->run("ALTER DATABASE " + database.name() + " RESET session_replication_role");
  CHECK(run_fixes(*connection, rig.examine("insert")));
  CHECK(all_fine(rig.examine("insert")));
  CHECK(value<int>(*connection, "SELECT count(*) FROM tokens") == 3);
}

TEST_CASE("messages without a token are found, and those that would have been refused get none by the fix") {
  const TestDatabase database;
  const auto connection = database.connect();
  DoctorRig rig(database);
  const TestRole producer(database, "producer");
  insert_accounts(*connection, 1);
  connection->run("SELECT mailroom_create_action('magic_link', path => '/magic', template => 'magic')");
  connection->run("GRANT INSERT ON mailroom_messages TO " + producer.name());
  connection->run("ALTER TABLE mailroom_messages DISABLE TRIGGER after_message_insert");
  connection->run("SET ROLE " + producer.name());
  connection->run(
      "INSERT INTO mailroom_messages (recipients, subject, text) VALUES ('{ann@x.example}', 'a', 'a')");
  connection->run(
      "INSERT INTO mailroom_messages (recipients, subject, text, send_after) VALUES ('{ann@x.example}', 'a', 'a', '2099-01-01')");
  INFO("a signed link of an account to somebody else's address");
  connection->run(
      "INSERT INTO mailroom_messages (action, account, recipients) VALUES ('magic_link', 1, '{eve@x.example}')");
  connection->run("INSERT INTO mailroom_messages (action, account) VALUES ('activation', 1)");
  connection->run("RESET ROLE");
  connection->run("ALTER TABLE mailroom_messages ENABLE TRIGGER after_message_insert");
  connection->run(
      "SELECT mailroom_send(ARRAY['ann@x.example'], subject => 'a', text => 'a', send_after => '2099-01-01')");
  CHECK(summary(rig.examine("insert")) ==
        "ok: an account inserted as postgres gets its activation token; rolled back; "
        "failure: 2 messages of the last day have no token, so nobody mails them: messages 2, 1; "
        "warning: 2 messages of the last day have no token, and would have been refused: messages 4, 3");
  CHECK(run_fixes(*connection, rig.examine("insert")));
  CHECK(value<std::string>(*connection,
                           "SELECT string_agg(message::text, ' ') FROM tokens WHERE message IS NOT NULL") ==
        "1");
  CHECK(value<std::string>(*connection,
                           "SELECT string_agg(message::text, ' ' ORDER BY message) FROM mailroom_schedule") ==
        "2 5");
  CHECK(summary(rig.examine("insert")) ==
        "ok: an account inserted as postgres gets its activation token; rolled back; "
        "warning: 2 messages of the last day have no token, and would have been refused: messages 4, 3");
  connection->run("UPDATE mailroom_messages SET cancelled_at = now() WHERE id = 3");
  connection->run("UPDATE mailroom_messages SET created_at = now() - interval '25 hours' WHERE id = 4");
  CHECK(all_fine(rig.examine("insert")));
}

TEST_CASE("an insert that fails for want of an id is a failure, not a refusal of the application's own") {
  const TestDatabase database;
  const auto connection = database.connect();
  DoctorRig rig(database);
  connection->run("ALTER TABLE tokens DISABLE TRIGGER before_token_insert");
  const auto findings = rig.examine("insert");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
  CHECK(findings[0].reason.starts_with(
      "no account and no message can be inserted: null value in column \"id\""));
  CHECK(
      rig.examine("triggers").front().reason ==
      "before_token_insert on tokens is disabled: a token gets no id, so every sign-up and every message fails");
}

TEST_CASE("a refusal that is the application's own is no failure") {
  const TestDatabase database;
  const auto connection = database.connect();
  DoctorRig rig(database);
  connection->run("ALTER TABLE accounts ADD country text NOT NULL");
  const auto findings = rig.examine("insert");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::not_checked);
}

TEST_CASE("default privileges let no role create tokens, and doctor says whom they show secrets") {
  const TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const TestRole web(database, "web");
  connection->run("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT EXECUTE ON FUNCTIONS TO " + web.name());
  connection->run("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO " + web.name());
  connection->run("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT ON TABLES TO PUBLIC");
  migrate(*connection);
  // As on a database that was used before.
  connection->run(
      "GRANT SELECT, INSERT ON accounts, tokens, jobs TO PUBLIC; GRANT SELECT ON accounts, tokens, jobs TO " +
      web.name());
  DoctorRig rig(database);
  CHECK_FALSE(value<bool>(*connection, "SELECT bool_or(has_function_privilege('" + web.name() +
                                           "', oid, 'EXECUTE')) FROM pg_proc "
                                           "WHERE prosecdef AND pronamespace = 'public'::regnamespace"));
  CHECK(all_fine(rig.examine("drift")));
  auto findings = rig.examine("privileges");
  const std::string more = " has what no role of docs/security.md is given: ";
  CHECK(summary(findings) == "warning: everyone" + more +
                                 "INSERT, SELECT on accounts, jobs, tokens; warning: " + web.name() + more +
                                 "SELECT on accounts, jobs, tokens");
  CHECK(run_fixes(*connection, findings));
  CHECK(all_fine(rig.examine("privileges")));

  // What the role passes on ends with its own.
  const TestRole other(database, "other");
  connection->run("GRANT EXECUTE ON FUNCTION trg_after_account_suspension() TO " + web.name() +
                  " WITH GRANT OPTION");
  connection->run("SET ROLE " + web.name() +
                  "; GRANT EXECUTE ON FUNCTION trg_after_account_suspension() TO " + other.name() +
                  "; RESET ROLE");
  findings = rig.examine("privileges");
  const auto executes = more + "EXECUTE on trg_after_account_suspension";
  CHECK(summary(findings) == "failure: " + other.name() + executes + "; failure: " + web.name() + executes);
  CHECK(run_fixes(*connection, findings));
  CHECK(all_fine(rig.examine("privileges")));
  CHECK_FALSE(value<bool>(*connection, "SELECT has_function_privilege('" + other.name() +
                                           "', 'trg_after_account_suspension()', 'EXECUTE')"));
  connection->run("ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON FUNCTIONS FROM " + web.name());
  connection->run("ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON TABLES FROM PUBLIC");
  connection->run("ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON TABLES FROM " + web.name());
}

}  // namespace mailroom::test::doctor_insert_test
