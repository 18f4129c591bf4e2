// What consumers record beside their batches: the key that signs, who runs them, what a reload takes, and a
// database that has gone back.

#include <csignal>
#include <filesystem>

#include "base/actor.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/finished_run.hpp"
#include "support/reconcile_rig.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_collector.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::consumer_record_test {
namespace {

std::unique_ptr<claim::PgQueueSession> attach_with_key(const TestDatabase& database, const std::string& key) {
  claim::PgQueueSession::Setup setup{
      database.conninfo(), {"mailroom"}, "token_insert", schema::require_current_schema};
  setup.fingerprint = key;
  return std::make_unique<claim::PgQueueSession>(setup);
}

/// What `mailroom` prints with `words`.
std::string shown(const TestDatabase& database, const std::vector<std::string>& words) {
  std::vector<std::string> command{mailroom_binary};
  command.insert(command.end(), words.begin(), words.end());
  return run_to_end(command, {{"MAILROOM_DATABASE_URL", database.conninfo()}}).output;
}

}  // namespace

TEST_CASE("a batch names the key that signs it, and each earlier attempt its own") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  auto first = attach_with_key(database, "00112233445566aa");
  REQUIRE(first->claim({.limit = 1, .partial = true}).lease);
  CHECK(value<std::string>(*connection, "SELECT key FROM mailroom_batches") == "00112233445566aa");
  first.reset();
  const auto second = attach_with_key(database, "00112233445566bb");
  REQUIRE(eventually([&] { return second->claim({.limit = 1, .partial = true}).lease.has_value(); }));
  CHECK(value<std::string>(*connection,
                           "SELECT key || ' ' || (earlier_attempts->0->>'key') FROM mailroom_batches") ==
        "00112233445566bb 00112233445566aa");
  CHECK(count(shown(database, {"audit", "batch:1"}), "signed with key 00112233445566bb") == 1);
}

TEST_CASE("a consumer without a key leaves none on record") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  attach(database)->claim({.limit = 1, .partial = true});
  CHECK(value<bool>(*connection, "SELECT key IS NULL FROM mailroom_batches"));
}

TEST_CASE("audit names the address that each mail went to, the key that signed it, and who ran the sender") {
  DeliveryRig rig(1);
  const TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"});
  CHECK(sender.wait() == 0);
  rig.connection->run("UPDATE accounts SET email = 'corrected@test.example'");
  REQUIRE(run_to_end({mailroom_binary, "rewind-cursor", "--to-start", "--yes"},
                     {{"MAILROOM_DATABASE_URL", rig.database.conninfo()}})
              .status == 0);
  TestSender again(rig.database.conninfo(), relay.url(), {"--once"});
  CHECK(again.wait() == 0);
  const auto text = shown(rig.database, {"audit", "token:1"});
  INFO(text);
  CHECK(count(text, " for user1@test.example: ") == 1);
  CHECK(count(text, " for corrected@test.example: ") > 0);
  const auto key = crypto::Key::from_hex(test_key, "the test").fingerprint();
  CHECK(count(text, "(key " + key + ")") == 2);
  CHECK(value<std::string>(*rig.connection,
                           "SELECT min(claimed_by) FROM mailroom_batches WHERE key IS NOT NULL")
            .starts_with("mailroom send " + operator_name() + ":"));
}

TEST_CASE("a reload is logged and recorded with what it took") {
  DeliveryRig rig(0);
  const TestRelay relay;
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / "templates");
  directory.write("templates/recovery.txt", "{{link}}\n");
  directory.write("password", "first\n");
  const auto file = directory.write(
      "mailroom.yaml", "send:\n  templates: templates\n  password_file: password\n  connections: 2\n");
  std::filesystem::permissions(directory.path() / "password", std::filesystem::perms::owner_read);
  TestSender sender(rig.database.conninfo(), relay.url(), {"--config", file});
  REQUIRE(sender.connected());
  const auto reload = [&](int times) {
    sender.process().signal(SIGHUP);
    CHECK(eventually([&] { return count(sender.log(), "configuration reloaded") == times; }));
  };
  reload(1);
  CHECK(count(sender.log(), "configuration reloaded changed=0 took=\"nothing new\"") == 1);
  directory.write("templates/recovery.txt", "Hello, {{link}}\n");
  std::filesystem::remove(directory.path() / "password");
  directory.write("password", "second\n");
  std::filesystem::permissions(directory.path() / "password", std::filesystem::perms::owner_read);
  directory.write("mailroom.yaml",
                  "send:\n  templates: templates\n  password_file: password\n  connections: 3\n");
  reload(2);
  const std::string took = "send.connections, password: changed, templates: 1 changed";
  INFO(sender.log());
  CHECK(count(sender.log(), "configuration reloaded changed=3 took=\"" + took + "\"") == 1);
  CHECK(eventually([&] {
    return value<int>(*rig.connection, "SELECT count(*) FROM mailroom_operations WHERE kind = 'reload'") == 2;
  }));
  CHECK(value<std::string>(*rig.connection,
                           "SELECT details->>'took' || ' ' || (details->'settings'->0->>'after') FROM "
                           "mailroom_operations ORDER BY id DESC LIMIT 1") == took + " 3");
  CHECK(value<std::string>(*rig.connection, "SELECT actor FROM mailroom_operations ORDER BY id LIMIT 1")
            .starts_with("mailroom send " + operator_name() + ":"));
  CHECK(count(shown(rig.database, {"audit"}), took) == 1);
  CHECK(count(shown(rig.database, {"tail", "--since", "1h"}), took) == 1);
  CHECK(sender.log().find("second") == std::string::npos);
  std::filesystem::remove(directory.path() / "templates/recovery.txt");
  reload(3);
  CHECK(count(sender.log(), "templates: 1 changed, and recovery.txt is gone") == 1);
  CHECK(sender.stop() == 0);
}

TEST_CASE("a consumer notices that the database has gone back, and records it") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector collector(database, {"--batch-limit", "1", "--batch-timeout", "0s"});
  REQUIRE(collector.connected());
  insert_accounts(*connection, 3);
  REQUIRE(eventually([&] {
    return value<int>(*connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NOT NULL") == 3;
  }));
  // A restore of an older backup.
  connection->run("DELETE FROM mailroom_batches WHERE id > 1");
  connection->run("UPDATE jobs SET last_seq = 1");
  connection->run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
      "AND application_name LIKE 'mailroom collect %'");
  CHECK(eventually([&] {
    return count(collector.log(),
                 "the database has gone back to an older state, by a restore or a failover "
                 "newest_batch=1 claimed_before=3") == 1;
  }));
  CHECK(eventually([&] {
    return value<std::string>(
               *connection,
               "SELECT coalesce(max(details->>'newest' || ' ' || (details->>'known')), '') FROM "
               "mailroom_operations WHERE kind = 'went back'") == "1 3";
  }));
  CHECK(count(shown(database, {"audit"}), "the newest batch is 1, although batch 3 was claimed") == 1);
  CHECK(collector.stop() == 0);
}

TEST_CASE("a consumer notices a restore of the data alone, which leaves its session as it is") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector collector(database, {"--batch-limit", "1", "--batch-timeout", "0s"});
  REQUIRE(collector.connected());
  insert_accounts(*connection, 3);
  REQUIRE(eventually([&] {
    return value<int>(*connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NOT NULL") == 3;
  }));
  connection->run(
      "BEGIN; DELETE FROM mailroom_batches WHERE id > 1; UPDATE jobs SET last_seq = 1; "
      "SELECT setval('mailroom_batches_id_seq', 1); COMMIT");
  insert_accounts(*connection, 1, "later");
  CHECK(eventually([&] {
    return count(collector.log(),
                 "the database has gone back to an older state, by a restore or a failover "
                 "newest_batch=2 claimed_before=3") == 1;
  }));
  CHECK(eventually([&] {
    return value<int>(*connection, "SELECT count(*) FROM mailroom_operations WHERE kind = 'went back'") == 1;
  }));
  CHECK(collector.stop() == 0);
}

TEST_CASE("a consumer waits while the disk of the database is full, and acknowledges what it has written") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run(R"(
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
END
$$)");
  connection->run(
      "CREATE TRIGGER full_disk BEFORE UPDATE ON mailroom_batches FOR EACH ROW EXECUTE FUNCTION refuse()");
  TestCollector collector(database, {"--batch-limit", "1", "--batch-timeout", "0s"});
  REQUIRE(collector.connected());
  insert_accounts(*connection, 3);
  CHECK(eventually([&] { return count(collector.log(), "statement failed, retrying") >= 2; }));
  CHECK(count(collector.log(), "No space left on device") >= 2);
  connection->run("DROP TRIGGER full_disk ON mailroom_batches");
  CHECK(eventually([&] {
    return value<int>(*connection,
                      "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NOT NULL AND emitted = 1") ==
           3;
  }));
  CHECK(value<int>(*connection, "SELECT max(attempts) FROM mailroom_batches") == 1);
  CHECK(collector.stop() == 0);
}

TEST_CASE("reconcile counts the tokens that were emitted and no longer exist") {
  ReconcileRig rig;
  rig.emit(7);
  CHECK(rig.result().deleted == 0);
  rig.connection->run("DELETE FROM accounts WHERE id IN (2, 3, 7)");
  rig.carry_out(to(0));
  rig.drain(2);
  CHECK(rig.result().deleted == 3);
  CHECK(rig.classes() == "4 emitted_again");
  const auto text = shown(rig.database, {"reconcile"});
  CHECK(count(text,
              "3 tokens that were emitted are no longer in the database: deleted, with their accounts or "
              "alone\n") == 1);
  CHECK(count(text, "every token is explained") == 1);
  rig.connection->run(
      "INSERT INTO mailroom_operations (kind, actor, details) VALUES ('prune', 'ann', '{\"tokens\": 3}')");
  CHECK(count(shown(rig.database, {"reconcile"}),
              "no longer in the database: deleted by mailroom prune, which last ran ") == 1);
}

}  // namespace mailroom::test::consumer_record_test
