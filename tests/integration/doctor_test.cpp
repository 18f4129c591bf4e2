// mailroom doctor as a whole: what it finds, and that it changes nothing.

#include "schema/schema_objects.hpp"
#include "support/doctor_rig.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::doctor_test {
namespace {

/// The location of every row of the database, in tables and catalogues alike, the transaction that wrote it,
/// and the value of every sequence. Statistics are excluded: the server changes them on its own.
std::string fingerprint(db::Connection& connection) {
  std::string text;
  const auto relations = connection.run(
      "SELECT oid::regclass, relkind FROM pg_class WHERE NOT relisshared AND relkind IN ('r', 'S') "
      "AND relnamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace) "
      "AND relname !~ '^pg_statistic' ORDER BY oid");
  for (const auto& relation : relations) {
    const std::string name = relation[0].c_str();
    const bool is_table = std::string(relation[1].c_str()) == "r";
    const auto row = connection.run(
        is_table
            ? "SELECT count(*), md5(string_agg(format('%s %s %s', ctid, xmin, xmax), ',' ORDER BY ctid)) "
              "FROM " +
                  name
            : "SELECT last_value, is_called FROM " + name)[0];
    // An account that is inserted and rolled back takes an id of each.
    if (name == "accounts_id_seq" || name == "tokens_id_seq") continue;
    text += name + " " + row[0].c_str() + " " + row[1].c_str() + "\n";
  }
  return text;
}

doctor::CheckVerdict worst(const doctor::Findings& findings, const std::string& check) {
  auto verdict = doctor::CheckVerdict::ok;
  for (const auto& finding : findings) {
    if (finding.check == check) verdict = std::max(verdict, finding.verdict);
  }
  return verdict;
}

}  // namespace

TEST_CASE("a correct database with a running collector has no problems") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  // Before PostgreSQL 15 everyone may create objects there.
  connection->run("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
  const auto session = attach(database);
  for (const auto& finding : DoctorRig(database).examine()) {
    INFO(finding.check << ": " << finding.reason);
    // The test's server may run with fsync off.
    if (finding.check != "settings") CHECK(finding.verdict == doctor::CheckVerdict::ok);
  }
}

TEST_CASE("the doctor changes nothing in the database") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const auto session = attach(database);
  session->claim({.limit = 2});
  const auto before = fingerprint(*connection);
  DoctorRig(database).examine();
  CHECK(fingerprint(*connection) == before);
}

TEST_CASE("the doctor's session is read-only, so no check can write") {
  TestDatabase database;
  const auto connection = database.connect();
  // The only function of ours that a check calls.
  connection->run(
      "CREATE OR REPLACE FUNCTION mailroom_queue_state(p_queue text, OUT cursor bigint, OUT open_from "
      "bigint, "
      "OUT gap_ids bigint[]) LANGUAGE plpgsql AS $$ BEGIN UPDATE jobs SET last_seq = 7; END $$");
  const auto findings = DoctorRig(database).examine("sequence");
  CHECK(summary(findings) == "failure: cannot execute UPDATE in a read-only transaction");
  CHECK(value<int>(*connection, "SELECT last_seq FROM jobs") == 0);
}

TEST_CASE("the objects that the doctor expects are those that the migrations create") {
  TestDatabase database;
  std::set<schema::CatalogueKey> made;
  database.connect()->dry_run([&](pqxx::work& transaction) {
    for (const auto& [key, entry] : schema::read_catalogue(transaction, "public")) {
      const bool is_expected =
          key.kind != schema::ObjectKind::type && key.kind != schema::ObjectKind::sequence;
      const bool has_index =
          entry.definition.starts_with("PRIMARY KEY") || entry.definition.starts_with("UNIQUE");
      const bool is_part =
          key.kind == schema::ObjectKind::constraint || key.kind == schema::ObjectKind::trigger;
      const auto name = key.name.substr(is_part ? key.name.find('.') + 1 : 0);
      if (is_expected && (key.kind != schema::ObjectKind::constraint || has_index))
        made.insert({key.kind, name.substr(0, name.find('('))});
    }
  });
  std::set<schema::CatalogueKey> expected;
  std::set<std::string> triggers;
  for (const auto& [key, object] : schema::expected_objects()) {
    expected.insert(key);
    if (key.kind == schema::ObjectKind::trigger) triggers.insert(key.name);
  }
  CHECK(expected == made);
  std::set<std::string> with_consequence;
  for (const auto& trigger : schema::expected_triggers())
    with_consequence.emplace(trigger.name);
  CHECK(with_consequence == triggers);
}

TEST_CASE("each check that fails for a lost connection says so") {
  TestDatabase database;
  const auto connection = database.connect();
  DoctorRig rig(database);
  rig.now = [&] {
    connection->run(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE application_name LIKE 'mailroom doctor %' AND datname = current_database()");
    return std::chrono::system_clock::now();
  };
  const auto findings = rig.examine();
  CHECK(worst(findings, "pooler") == doctor::CheckVerdict::ok);
  CHECK(worst(findings, "database") == doctor::CheckVerdict::failure);
  for (const std::string check : {"clock", "settings", "schema", "drift", "privileges", "triggers", "channel",
                                  "sequence", "queue", "collectors", "batches"}) {
    INFO(check);
    CHECK(worst(findings, check) == doctor::CheckVerdict::not_checked);
  }
  CHECK(doctor::judge(findings) == ExitCode::database);
}

TEST_CASE("a client clock that differs is a warning, because only the server's clock matters") {
  TestDatabase database;
  DoctorRig rig(database);
  rig.now = [] { return std::chrono::system_clock::now() - std::chrono::hours(2); };
  const auto findings = rig.examine("clock");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::warning);
  CHECK(findings[0].reason.find("ahead of this host's") != std::string::npos);
}

TEST_CASE("a broken file does not stop checks that do not depend on it") {
  TestDatabase database;
  const TemporaryDirectory directory;
  DoctorRig rig(database);
  rig.overrides.file = directory.write("broken.yaml", "collect: {qeueu: other}");
  const auto findings = rig.examine();
  CHECK(worst(findings, "configuration") == doctor::CheckVerdict::failure);
  for (const std::string check : {"key", "database", "schema", "drift", "triggers", "sequence"}) {
    INFO(check);
    CHECK(worst(findings, check) == doctor::CheckVerdict::ok);
  }
  // The file may have set another queue or channel.
  for (const std::string check : {"previous keys", "queue", "channel", "collectors"}) {
    INFO(check);
    CHECK(worst(findings, check) == doctor::CheckVerdict::not_checked);
  }
  rig.environment["MAILROOM_QUEUE_NAME"] = "mailroom";
  CHECK(all_fine(rig.examine("queue")));
}

TEST_CASE("another encoding of the database is a warning") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto name = database.name() + "_latin1";
  connection->run("CREATE DATABASE " + name + " TEMPLATE template0 ENCODING 'LATIN1'");
  DoctorRig rig(database);
  rig.environment["MAILROOM_DATABASE_URL"] = "dbname=" + name;
  const auto findings = rig.examine("database");
  connection->run("DROP DATABASE " + name);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].verdict == doctor::CheckVerdict::warning);
  CHECK(findings[0].reason.find("LATIN1") != std::string::npos);
}

TEST_CASE("a dead collector does not count as a collector, and a dead batch is named") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const DoctorRig rig(database);
  auto session = attach(database);
  const auto lease = session->claim({.limit = 2}).lease;
  REQUIRE(lease);
  CHECK(summary(rig.examine("collectors")) == "ok: 1 is connected");
  session.reset();
  REQUIRE(eventually([&] { return !all_fine(rig.examine("collectors")); }));
  const auto none = rig.examine("collectors");
  CHECK(none[0].verdict == doctor::CheckVerdict::failure);
  CHECK(none[0].reason.starts_with(
      "3 tokens wait and no collector is connected. Start the collector's service"));
  connection->run("UPDATE tokens SET expires_at = 1");
  CHECK(rig.examine("collectors")[0].reason.starts_with("no collector is connected; no token waits"));
  CHECK(rig.examine("collectors")[0].verdict == doctor::CheckVerdict::warning);

  CHECK(all_fine(rig.examine("batches")));
  connection->run("UPDATE mailroom_batches SET dead_at = now(), attempts = 20 WHERE id = $1", lease->batch);
  const auto batches = rig.examine("batches");
  CHECK(summary(batches) ==
        "warning: batch 1 of the queue mailroom was dead-lettered after 20 attempts: 2 tokens were not "
        "emitted");
  CHECK(batches[0].fix.front().starts_with("SELECT public.mailroom_replay('mailroom', "));
  CHECK(batches[0].hint == "mailroom audit batch:1 shows its attempts");
}

}  // namespace mailroom::test::doctor_test
