// Each problem that mailroom doctor knows is created for real, and is gone after the printed fix.

#include <fmt/format.h>

#include "replay/sequence_fix.hpp"
#include "schema/schema_objects.hpp"
#include "support/doctor_rig.hpp"
#include "support/operator_rig.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::doctor_fix_test {
namespace {

std::string definition_of_trigger(db::Connection& connection, std::string_view name) {
  return value<std::string>(
      connection,
      fmt::format("SELECT pg_get_triggerdef(oid) || tgenabled::text FROM pg_trigger WHERE tgname = '{}'",
                  name));
}

std::string definition_of_index(db::Connection& connection, std::string_view name) {
  return value<std::string>(connection, fmt::format("SELECT pg_get_indexdef('{}'::regclass)", name));
}

struct Damage {
  std::string statement;
  std::string named;  ///< in the finding about it, and in no other
  doctor::CheckVerdict verdict;
};

/// Checks that `check` has one finding for each damage, and none after the findings' fixes.
void check_fixing_all(db::Connection& connection, const DoctorRig& rig, const std::string& check,
                      const std::vector<Damage>& damages) {
  for (const auto& damage : damages)
    connection.run(damage.statement);
  const auto findings = rig.examine(check);
  INFO(summary(findings));
  REQUIRE(findings.size() == damages.size());
  for (const auto& damage : damages) {
    INFO(check << ": " << damage.statement);
    const auto names = [&](const doctor::Finding& finding) {
      return finding.reason.find(damage.named) != std::string::npos;
    };
    REQUIRE(std::ranges::count_if(findings, names) == 1);
    CHECK(std::ranges::find_if(findings, names)->verdict == damage.verdict);
  }
  REQUIRE(run_fixes(connection, findings));
  REQUIRE(all_fine(rig.examine(check)));
}

}  // namespace

TEST_CASE("a disabled or missing trigger is found, and fixed to its original definition") {
  TestDatabase database;
  const auto connection = database.connect();
  const DoctorRig rig(database);
  REQUIRE(all_fine(rig.examine("triggers")));
  const auto definitions = [&] {
    std::vector<std::string> all;
    for (const auto& trigger : schema::expected_triggers())
      all.push_back(definition_of_trigger(*connection, trigger.name));
    return all;
  };
  const auto before = definitions();
  for (const auto* how : {"ALTER TABLE {1} DISABLE TRIGGER {0}", "ALTER TABLE {1} ENABLE REPLICA TRIGGER {0}",
                          "DROP TRIGGER {0} ON {1}"}) {
    std::vector<Damage> damages;
    for (const auto& trigger : schema::expected_triggers())
      damages.push_back({fmt::format(fmt::runtime(how), trigger.name, trigger.table),
                         fmt::format("{} on {} is ", trigger.name, trigger.table),
                         trigger.is_vital ? doctor::CheckVerdict::failure : doctor::CheckVerdict::warning});
    check_fixing_all(*connection, rig, "triggers", damages);
    CHECK(definitions() == before);
  }
}

TEST_CASE("a missing index is found, and fixed to its original definition") {
  TestDatabase database;
  const auto connection = database.connect();
  const DoctorRig rig(database);
  REQUIRE(all_fine(rig.examine("drift")));
  std::vector<Damage> damages;
  std::map<std::string, std::string> before;
  for (const auto& [key, object] : schema::expected_objects()) {
    const bool is_constraint = key.kind == schema::ObjectKind::constraint;
    // An index that a foreign key needs cannot be dropped alone.
    const bool is_referenced = key.name == "accounts_pkey" || key.name == "mailroom_messages_pkey";
    if ((!is_constraint && key.kind != schema::ObjectKind::index) || is_referenced) continue;
    before[key.name] = definition_of_index(*connection, key.name);
    damages.push_back({is_constraint
                           ? fmt::format("ALTER TABLE {} DROP CONSTRAINT {}", object.table, key.name)
                           : fmt::format("DROP INDEX {}", key.name),
                       fmt::format(" {} on {} is missing", key.name, object.table),
                       is_constraint ? doctor::CheckVerdict::failure : doctor::CheckVerdict::warning});
  }
  check_fixing_all(*connection, rig, "drift", damages);
  for (const auto& [name, definition] : before)
    CHECK(definition_of_index(*connection, name) == definition);
  check_next_fixing(
      *connection, rig, "drift", doctor::CheckVerdict::warning,
      "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'tokens_account_idx'::regclass");
}

TEST_CASE("a function whose search_path is not pinned, or pinned to another schema, is found and fixed") {
  TestDatabase database;
  const auto connection = database.connect();
  const DoctorRig rig(database);
  check_fixing(*connection, rig, "drift", doctor::CheckVerdict::failure,
               "ALTER FUNCTION mailroom_window(bigint, bigint, integer, token_action[]) RESET search_path");
  check_fixing(*connection, rig, "drift", doctor::CheckVerdict::failure,
               "ALTER FUNCTION trg_before_token_insert() SET search_path = elsewhere");
}

TEST_CASE("a missing table, column or function is found, with the migration that created it") {
  TestDatabase database;
  const auto connection = database.connect();
  const DoctorRig rig(database);
  connection->run("ALTER TABLE accounts DROP COLUMN unsuspended_at");
  connection->run("DROP FUNCTION mailroom_update_gaps");
  connection->run("DROP TABLE mailroom_operations");
  const auto findings = rig.examine("drift");
  CHECK(summary(findings) ==
        "failure: the table mailroom_operations is missing; failure: the column accounts.unsuspended_at is "
        "missing; "
        "failure: the function mailroom_update_gaps is missing");
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].hint.find("migrations/7_queue.up.sql") != std::string::npos);
  CHECK(findings[2].fix == std::vector<std::string>{fmt::format(
                               "mailroom migrate goto {}", schema::embedded_migrations().back().version)});
  CHECK(findings[1].hint.find("migrations/0_init.up.sql") != std::string::npos);
  CHECK(findings[2].hint.find("functions/gaps.sql") != std::string::npos);
}

TEST_CASE("a sequence that skips or wraps is found and fixed") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5);
  const DoctorRig rig(database);
  for (const std::string change : {"CACHE 20", "INCREMENT 2", "CYCLE"}) {
    check_fixing(*connection, rig, "sequence", doctor::CheckVerdict::failure,
                 "ALTER SEQUENCE tokens_id_seq " + change);
  }
}

TEST_CASE(
    "a sequence behind the newest token or the cursor of any queue is found, with the command that fixes "
    "it") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 5);
  connection->run("INSERT INTO jobs (job_type, last_seq) VALUES ('second', 4)");
  const auto session = attach(database);
  session->claim({.limit = 5});
  const DoctorRig rig(database);
  connection->run("SELECT setval('tokens_id_seq', 4)");
  CHECK(rig.examine("sequence")[0].reason ==
        "tokens_id_seq is at 4, behind the newest id of tokens, 5: the next INSERT fails");
  connection->run("TRUNCATE accounts, tokens RESTART IDENTITY");
  insert_accounts(*connection, 4, "new");
  const auto findings = rig.examine("sequence");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::failure);
  CHECK(
      findings[0].reason.starts_with("tokens_id_seq is at 4, behind the cursor of the queue mailroom at 5"));
  CHECK(findings[0].fix == std::vector<std::string>{"mailroom rewind-cursor --fix-sequence"});
  // The function that this command calls.
  replay::carry_out_sequence_fix(*connection, {}, {.actor = "tester@host", .reason = ""}, "token_insert");
  CHECK(all_fine(rig.examine("sequence")));
}

TEST_CASE("missing, old, newer, dirty and foreign schemas are told apart") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const DoctorRig rig(database);
  const auto missing = rig.examine("schema");
  CHECK(summary(missing) == "failure: the database has no mailroom schema yet");
  CHECK(missing[0].fix == std::vector<std::string>{"mailroom migrate"});
  CHECK(summary(rig.examine("triggers")) == "not checked: the schema is not current");

  migrate(*connection);
  const auto newest = schema::embedded_migrations().back().version;
  connection->run("UPDATE schema_migrations SET dirty = true");
  const auto dirty = rig.examine("schema");
  CHECK(summary(dirty) ==
        fmt::format("failure: marked dirty at version {}: another tool failed while migrating", newest));
  CHECK(dirty[0].fix == std::vector<std::string>{fmt::format("mailroom migrate force {}", newest - 1)});
  connection->run("UPDATE schema_migrations SET dirty = false");

  connection->run("UPDATE schema_migrations SET version = $1", newest - 1);
  const auto old = rig.examine("schema");
  CHECK(summary(old) == fmt::format("failure: version {}, but version {} is needed", newest - 1, newest));
  CHECK(old[0].fix == std::vector<std::string>{"mailroom migrate"});

  connection->run("UPDATE schema_migrations SET version = $1", newest + 1);
  CHECK(rig.examine("schema")[0].verdict == doctor::CheckVerdict::warning);
  CHECK(rig.examine("drift")[0].verdict == doctor::CheckVerdict::not_checked);
  CHECK(all_fine(rig.examine("triggers")));

  connection->run("ALTER TABLE schema_migrations ALTER version TYPE text");
  CHECK(summary(rig.examine("schema")) ==
        "failure: the table schema_migrations (version text, dirty boolean) belongs to another tool");
}

TEST_CASE("tables in a schema outside the search_path are found, and fixed") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  connection->run("CREATE SCHEMA mail");
  migrate(*std::make_unique<db::Connection>(database.conninfo() + " options='-c search_path=mail,public'",
                                            "test"));
  const DoctorRig rig(database);
  const auto findings = rig.examine("schema");
  CHECK(summary(findings) ==
        "failure: the tables are in the schema mail, but the search_path is \"$user\", public");
  REQUIRE(run_fixes(*connection, findings));
  CHECK(all_fine(rig.examine("schema")));
  CHECK(all_fine(rig.examine("drift")));
}

TEST_CASE("what doctor prints in a schema of its own changes nothing of the application's") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  connection->run(
      "CREATE SCHEMA \"Our Mail\"; CREATE TABLE tokens (id serial PRIMARY KEY); "
      "ALTER SEQUENCE tokens_id_seq CACHE 50");
  const auto conninfo = database.conninfo() + " options='-csearch_path=\"Our\\\\ Mail\",public'";
  db::Connection ours(conninfo, "test");
  migrate(ours);
  DoctorRig rig(database);
  rig.environment["MAILROOM_DATABASE_URL"] = conninfo;
  for (const auto& [check, break_it] : std::vector<std::pair<std::string, std::string>>{
           {"sequence", "ALTER SEQUENCE tokens_id_seq CACHE 10"},
           {"triggers", "ALTER TABLE tokens DISABLE TRIGGER before_token_insert"},
           {"triggers", "DROP TRIGGER before_token_insert ON tokens"},
           {"drift", "DROP INDEX tokens_account_idx"},
           {"drift", "ALTER FUNCTION mailroom_batches_of RESET search_path"},
           {"drift",
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'tokens_account_idx'::regclass"}}) {
    check_fixing(ours, rig, check,
                 break_it.find("index") == std::string::npos && break_it.find("INDEX") == std::string::npos
                     ? doctor::CheckVerdict::failure
                     : doctor::CheckVerdict::warning,
                 break_it);
  }
  CHECK(value<int>(*connection,
                   "SELECT seqcache FROM pg_sequence WHERE seqrelid = 'public.tokens_id_seq'::regclass") ==
        50);
}

TEST_CASE("a role or database whose transactions are read-only is found, and fixed where they were set") {
  TestDatabase database;
  const auto connection = database.connect();
  DoctorRig rig(database);
  const auto found = [&](const std::string& check, const std::string& reason) {
    auto findings = rig.examine(check);
    std::erase_if(findings,
                  [&](const doctor::Finding& finding) { return !finding.reason.starts_with(reason); });
    return findings;
  };
  for (const std::string& whose :
       {"DATABASE " + database.name(), "ROLE postgres IN DATABASE " + database.name()}) {
    const auto ill = fmt::format("ALTER {} SET default_transaction_read_only = on", whose);
    const std::string reason = "transactions are read-only";
    INFO(ill);
    CHECK(found("database", reason).empty());
    connection->run(ill);
    const auto findings = found("database", reason);
    REQUIRE(findings.size() == 1);
    // A role may be one that only reads.
    CHECK(findings[0].verdict ==
          (whose.starts_with("ROLE") ? doctor::CheckVerdict::warning : doctor::CheckVerdict::failure));
    CHECK(findings[0].fix.front() == "SET default_transaction_read_only = off;");
    CHECK(run_fixes(*connection, findings));
    CHECK(found("database", reason).empty());
  }
  // If no statement helps, a hint does.
  rig.environment["MAILROOM_DATABASE_URL"] += " options='-c default_transaction_read_only=on'";
  const auto findings = found("database", "transactions are read-only");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].fix.empty());
  CHECK(findings[0].hint.find("connection string") != std::string::npos);
}

TEST_CASE("a queue that has no row in jobs is found and fixed, whatever its name") {
  TestDatabase database;
  const auto connection = database.connect();
  DoctorRig rig(database);
  rig.environment["MAILROOM_QUEUE_NAME"] = "o'brien";
  connection->run(
      "SELECT mailroom_set_queue('mailroom', '{\"actions\": [\"activation\", \"message\"]}', 'token_insert')");
  const auto findings = rig.examine("queue");
  REQUIRE_FALSE(findings.empty());
  CHECK(findings[0].reason == "there is no queue o'brien; the queues are: mailroom");
  REQUIRE(findings[0].fix.size() == 1);
  CHECK(OperatorRig(database).type(findings[0].fix[0]).status == 0);
  CHECK(all_fine(rig.examine("queue")));
}

TEST_CASE("a channel that no token notifies is found") {
  TestDatabase database;
  const auto connection = database.connect();
  DoctorRig rig(database);
  rig.environment["MAILROOM_CHANNEL_NAME"] = "elsewhere";
  const auto findings = rig.examine("channel");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::warning);
  CHECK(findings[0].fix == std::vector<std::string>{"export MAILROOM_CHANNEL_NAME=token_insert"});
  connection->run(
      "CREATE OR REPLACE FUNCTION trg_after_token_inserted() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN PERFORM pg_notify('elsewhere', ''); RETURN NULL; END $$");
  CHECK(all_fine(rig.examine("channel")));
}

TEST_CASE("a key that is missing, weak, readable by everyone or configured twice is found") {
  TestDatabase database;
  const TemporaryDirectory directory;
  const std::string digits = "cafebabecafebabecafebabecafebabecafebabecafebabecafebabecafebab0";
  DoctorRig rig(database);
  rig.environment.erase("MAILROOM_SECRET_KEY");
  CHECK(summary(rig.examine("key")) == "failure: no signing key is configured");
  rig.environment["MAILROOM_SECRET_KEY"] = std::string(64, '0');
  CHECK(rig.examine("key")[0].reason.find("is one byte repeated") != std::string::npos);
  rig.environment.erase("MAILROOM_SECRET_KEY");

  const auto path = directory.write("the key", digits, 0644);
  rig.environment["MAILROOM_SECRET_KEY_FILE"] = path;
  const auto open = rig.examine("key");
  CHECK(summary(open) == "failure: everyone can read the key file " + path);
  REQUIRE(open[0].fix.size() == 1);
  REQUIRE(std::system(open[0].fix[0].c_str()) == 0);
  CHECK(all_fine(rig.examine("key")));

  rig.environment["MAILROOM_PREVIOUS_SECRET_KEYS"] = digits + "," + std::string(64, 'f');
  CHECK(summary(rig.examine("previous keys")) ==
        "warning: the key in MAILROOM_PREVIOUS_SECRET_KEYS is also the current key; failure: the key in "
        "MAILROOM_PREVIOUS_SECRET_KEYS is one byte repeated: anyone can forge tokens under it");
  CHECK(doctor::judge(rig.examine("previous keys")) == ExitCode::configuration);
  // A finding never contains a key.
  for (const auto& finding : rig.examine())
    CHECK((finding.reason + finding.hint).find(digits.substr(0, 16)) == std::string::npos);
}

}  // namespace mailroom::test::doctor_fix_test
