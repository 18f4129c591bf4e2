// The roles of mailroom init --roles: each can do its job and nothing else.

#include <atomic>
#include <fmt/format.h>
#include <set>
#include <thread>

#include "support/build_paths.hpp"
#include "support/doctor_rig.hpp"
#include "support/documented_roles.hpp"
#include "support/finished_run.hpp"
#include "support/http_client.hpp"
#include "support/mail_rows.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::roles_test {
namespace {

/// mailroom as the login of a role.
FinishedRun run_as(const DocumentedRoles& roles, const std::string& role, std::vector<std::string> words) {
  words.insert(words.begin(), mailroom_binary);
  return run_to_end(words,
                    {{"MAILROOM_DATABASE_URL", roles.conninfo(role)}, {"MAILROOM_SECRET_KEY", test_key}});
}

bool is_refused(db::Connection& connection, const std::string& sql) {
  try {
    connection.run(sql);
  } catch (const db::DatabaseError& error) {
    return error.sqlstate() == "42501";
  }
  return false;
}

void check_refused(db::Connection& connection, const std::vector<std::string>& statements) {
  for (const auto& sql : statements) {
    INFO(sql);
    CHECK(is_refused(connection, sql));
  }
}

/// `tokens SELECT`, `jobs UPDATE`, …: a role's privileges on whole tables and sequences.
std::set<std::string> privileges_of(db::Connection& owner, const std::string& role) {
  std::set<std::string> all;
  for (const auto& row :
       owner.run("SELECT c.relname || ' ' || p.privilege_type FROM pg_class c, aclexplode(c.relacl) p "
                 "WHERE p.grantee = $1::regrole",
                 role)) {
    all.insert(row[0].c_str());
  }
  return all;
}

}  // namespace

TEST_CASE("the documented application inserts accounts, and can neither read nor insert tokens") {
  TestDatabase database;
  const DocumentedRoles roles(database);
  const auto app = roles.connect("app");
  CHECK(app->run("INSERT INTO accounts (email, login) VALUES ('a@x.example', 'a') RETURNING id")[0][0]
            .as<int>() == 1);
  CHECK(value<int>(roles.owner(),
                   "SELECT count(*) FROM tokens WHERE account = 1 AND action = 'activation'") == 1);
  check_refused(*app,
                {"SELECT secret FROM tokens", "SELECT code FROM tokens", "SELECT id FROM tokens",
                 "INSERT INTO tokens (account, action) VALUES (1, 'password_recovery')",
                 "UPDATE tokens SET consumed_at = 1", "DELETE FROM tokens", "SELECT email FROM accounts",
                 "INSERT INTO accounts (id, email, login) VALUES (9, 'b', 'b')",
                 "UPDATE accounts SET status = 'active'", "DELETE FROM accounts", "SELECT * FROM jobs",
                 "SELECT * FROM mailroom_batches", "SELECT * FROM mailroom_operations",
                 "SELECT nextval('tokens_id_seq')", "SELECT mailroom_attach('mailroom')",
                 "CREATE TABLE mine (x int)", "CREATE FUNCTION mine() RETURNS int LANGUAGE sql RETURN 1"});
}

TEST_CASE("no role can create triggers with the functions that run with their owner's rights") {
  TestDatabase database;
  const DocumentedRoles roles(database);
  const auto definers = roles.owner().run(
      "SELECT proname FROM pg_proc WHERE prosecdef AND prorettype = 'trigger'::regtype AND pronamespace = "
      "quote_ident(current_schema())::regnamespace ORDER BY 1");
  REQUIRE(definers.size() == 14);
  const auto app = roles.connect("app");
  app->run("CREATE TEMP TABLE lure (id bigint, status account_status)");
  for (const auto& row : definers) {
    check_refused(*app,
                  {fmt::format("CREATE TRIGGER t AFTER INSERT ON lure FOR EACH ROW EXECUTE FUNCTION {}()",
                               row[0].c_str())});
  }
}

TEST_CASE(
    "the documented producer asks for mails by each way in, and can neither read nor make anything else") {
  TestDatabase database;
  const DocumentedRoles roles(database);
  insert_accounts(roles.owner(), 1);
  roles.owner().run(
      "SELECT mailroom_send(ARRAY['other@x.example'], subject => 'secret', text => 't', idempotency_key => 'other')");
  const auto producer = roles.connect("producer");
  const auto id = value<int>(*producer,
                             "SELECT mailroom_send(ARRAY['a@x.example'], template => 't', attachments => "
                             "'[{\"name\": \"a\", \"content\": \"QUJD\"}]')");
  const auto inserted = producer->run(
      "INSERT INTO mailroom_messages (action, recipients, cc, template, data, send_after, idempotency_key, created_at, enqueued_by) VALUES "
      "(NULL, '{a@x.example}', NULL, 't', NULL, NULL, 'k', NULL, NULL) ON CONFLICT DO NOTHING RETURNING id");
  CHECK(inserted.size() == 1);
  producer->run("BEGIN");
  producer->run(
      "WITH m AS (INSERT INTO mailroom_messages (recipients, template) VALUES ('{a@x.example}', 't') RETURNING id) SELECT id FROM m");
  producer->run(
      "INSERT INTO mailroom_attachments (message, place, name, content) SELECT max(id), 1, 'a', 'x' FROM mailroom_messages");
  producer->run("COMMIT");
  CHECK(value<std::string>(*producer, fmt::format("SELECT state FROM mailroom_message_status({})", id)) ==
        "waiting");
  CHECK(value<std::string>(*producer, fmt::format("SELECT mailroom_cancel({})", id)) == "cancelled");
  CHECK(value<int>(roles.owner(), "SELECT count(*) FROM mailroom_messages WHERE enqueued_by = '" +
                                      roles.name("producer") + "_login'") == 3);
  CHECK(
      value<int>(
          *producer,
          "SELECT mailroom_send(ARRAY['b@x.example'], template => 't', idempotency_key => 'other', options => '{\"replace\": true}')") >
      1);
  check_refused(
      *producer,
      {"SELECT * FROM mailroom_message_status(1)",
       "SELECT mailroom_cancel(1)",
       "SELECT recipients FROM mailroom_messages",
       "SELECT subject FROM mailroom_messages",
       "SELECT * FROM mailroom_attachments",
       "SELECT idempotency_key FROM mailroom_messages",
       "UPDATE mailroom_messages SET subject = 'x'",
       "DELETE FROM mailroom_messages",
       "INSERT INTO mailroom_messages (recipients, template, fingerprint) VALUES ('{a@x.example}', 't', 'x')",
       "INSERT INTO mailroom_messages (recipients, template, cancelled_at) VALUES ('{a@x.example}', 't', now())",
       "SELECT * FROM mailroom_schedule",
       "INSERT INTO mailroom_schedule VALUES (now(), 1)",
       "SELECT id FROM tokens",
       "SELECT secret FROM tokens",
       "INSERT INTO tokens (account, action) VALUES (1, 'activation')",
       "INSERT INTO tokens (message, action) VALUES (1, 'message')",
       "UPDATE tokens SET consumed_at = 1",
       "SELECT * FROM mailroom_deliveries",
       "SELECT * FROM accounts",
       "SELECT * FROM mailroom_batches",
       "SELECT * FROM jobs",
       "SELECT mailroom_release(1)",
       "SELECT mailroom_record_event('reload', NULL, NULL)",
       "SELECT mailroom_make_tokens('{1}')",
       "SELECT mailroom_cancel_tokens(1, NULL)",
       "SELECT mailroom_create_action('mine')",
       "SELECT mailroom_record_operation('prune', NULL, '{}')",
       "SELECT setval('mailroom_messages_id_seq', 1)",
       "INSERT INTO mailroom_messages (recipients, template, owner) VALUES ('{a@x.example}', 't', 1)",
       "INSERT INTO mailroom_owners VALUES (1, 1, 'x')"});
  // What docs/security.md lets the owner grant by hand.
  roles.owner().run(
      fmt::format("GRANT SELECT (owner, idempotency_key, replaced_at) ON mailroom_messages TO {}",
                  roles.name("producer")));
  CHECK(
      producer
          ->run(
              "INSERT INTO mailroom_messages (recipients, template, idempotency_key) VALUES ('{a@x.example}', 't', 'k') "
              "ON CONFLICT (owner, idempotency_key) WHERE idempotency_key IS NOT NULL AND replaced_at IS NULL DO NOTHING RETURNING id")
          .empty());
  CHECK_THROWS_WITH(producer->run("SELECT mailroom_send(NULL, action => 'password_recovery', account => 1)"),
                    Catch::Matchers::ContainsSubstring("is not made by a message"));
}

TEST_CASE(
    "the documented redeemer consumes a token, which activates its account, and inserts recovery tokens") {
  TestDatabase database;
  const DocumentedRoles roles(database);
  insert_accounts(roles.owner(), 1);
  const auto redeemer = roles.connect("redeemer");
  redeemer->run(
      "UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE secret = (SELECT secret FROM tokens)");
  CHECK(value<std::string>(roles.owner(), "SELECT status FROM accounts") == "active");
  redeemer->run("INSERT INTO tokens (account, action) VALUES (1, 'password_recovery')");
  check_refused(*redeemer, {"INSERT INTO accounts (email, login) VALUES ('b', 'b')",
                            "UPDATE accounts SET email = 'b'", "UPDATE tokens SET expires_at = 1",
                            "INSERT INTO tokens (account, action, secret) VALUES (1, 'activation', 'x')",
                            "DELETE FROM tokens", "SELECT * FROM jobs", "SELECT * FROM mailroom_batches"});
}

TEST_CASE("the documented collector collects with exactly the privileges that the doctor asks for") {
  TestDatabase database;
  const DocumentedRoles roles(database);
  insert_accounts(roles.owner(), 25);
  const auto run = run_as(roles, "collector", {"collect", "--once", "--format", "jsonl"});
  INFO(run.errors);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"collect", "--once", "--batch-limit", "5", "--lines-per-claim", "3"},
        {"collect", "--once", "--notify", "always"},
        {"collect", "--once", "--wait", "1s", "--poll-interval", "100ms"},
        {"doctor"}})
    CHECK(run_as(roles, "collector", words).status == 0);
  CHECK(run.status == 0);
  CHECK(emitted_ids(run.output).size() == 25);

  const auto documented = privileges_of(roles.owner(), roles.name("collector"));
  DoctorRig rig(database);
  rig.environment["MAILROOM_DATABASE_URL"] = roles.conninfo("collector");
  CHECK(summary(rig.examine("privileges")).starts_with("warning: "));
  const auto bare = roles.name("app") + "_login";
  rig.environment["MAILROOM_DATABASE_URL"] = roles.conninfo("app");
  REQUIRE(run_fixes(roles.owner(), rig.examine("privileges")));
  CHECK(privileges_of(roles.owner(), bare) == documented);
  roles.owner().run("DROP OWNED BY " + bare);

  const auto collector = roles.connect("collector");
  check_refused(*collector, {"INSERT INTO accounts (email, login) VALUES ('b', 'b')",
                             "UPDATE accounts SET status = 'suspended'", "DELETE FROM accounts",
                             "INSERT INTO tokens (account, action) VALUES (1, 'activation')",
                             "UPDATE tokens SET consumed_at = 1", "UPDATE tokens SET expires_at = 1",
                             "DELETE FROM tokens", "DELETE FROM mailroom_batches", "DELETE FROM jobs",
                             "INSERT INTO mailroom_operations (kind, actor) VALUES ('prune', 'x')",
                             "SELECT mailroom_send(ARRAY['a@x.example'], template => 't')",
                             "UPDATE mailroom_messages SET text = ''", "SELECT nextval('tokens_id_seq')",
                             "SELECT setval('tokens_id_seq', 1)"});
  collector->run("SELECT mailroom_release(10), mailroom_record_event('reload', 'mailroom', '{}')");
  CHECK(value<int>(roles.owner(), "SELECT count(*) FROM mailroom_operations WHERE kind = 'reload'") == 1);
  CHECK(run_as(roles, "collector", {"suspend", "user1", "-y"}).status == 1);
  CHECK(value<int>(roles.owner(), "SELECT count(*) FROM accounts WHERE status = 'suspended'") == 0);
}

namespace {

/// Every command of `commands` works for `role`. No collector is connected, so status reports the queue as
/// unhealthy.
void run_each(const DocumentedRoles& roles, const std::string& role,
              const std::vector<std::vector<std::string>>& commands) {
  for (const auto& words : commands) {
    const auto run = run_as(roles, role, words);
    INFO(fmt::format("{} {}: {}{}", words[0], words.back(), run.output, run.errors));
    CHECK(run.status == (words[0] == "status" ? 8 : 0));
  }
}

/// For `role`, tail -f shows an account that is created while it follows.
void check_follows(const DocumentedRoles& roles, const TestDatabase& database, const std::string& role) {
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    const auto connection = database.connect();
    for (int i = 0; !is_over; ++i) {
      insert_accounts(*connection, 1, fmt::format("followed{}-", i));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const auto run = run_as(roles, role, {"tail", "-f", "-n", "1", "--state", "created", "--count", "3"});
  is_over = true;
  writer.join();
  INFO(run.errors);
  CHECK(run.status == 0);
  CHECK(run.output.find("followed") != std::string::npos);
}

}  // namespace

TEST_CASE("the documented reader reads everything but secrets and codes") {
  TestDatabase database;
  const DocumentedRoles roles(database);
  insert_accounts(roles.owner(), 3);
  REQUIRE(run_as(roles, "collector", {"collect", "--once"}).status == 0);
  insert_accounts(roles.owner(), 3, "more");
  roles.owner().run("UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id = 1");
  run_each(roles, "reader", {{"reconcile"}, {"reconcile", "-o", "prometheus"}});
  record(roles.owner(), {.token = 2, .state = "accepted", .code = 250, .reply = "ok"});
  run_each(roles, "reader",
           {{"status"},
            {"status", "-o", "json"},
            {"status", "--max-lag", "1h", "--max-pending", "5"},
            {"tail"},
            {"tail", "-n", "100"},
            {"tail", "-n", "100", "-o", "json"},
            {"tail", "--from-id", "1"},
            {"tail", "--since", "1h", "--mask"},
            {"tail", "--state", "delivery"},
            {"tail", "--state", "delivery", "--account", "user2"},
            {"audit", "token:2"},
            {"tail", "-n", "9", "--account", "user1"},
            {"tail", "-n", "9", "--action", "activation"},
            {"tail", "-n", "9", "--state", "created,emitted"},
            {"audit"},
            {"audit", "-o", "json"},
            {"audit", "user1"},
            {"audit", "--account", "login:user1"},
            {"audit", "token:1"},
            {"audit", "--token", "4"},
            {"audit", "batch:1"},
            {"audit", "--batches"},
            {"audit", "--since", "2h", "--until", "1h"},
            {"template", "render", "recovery", "--account", "user1"},
            {"queue", "list"},
            {"queue", "show", "mailroom"},
            {"migrate", "status"}});
  roles.owner().run("SELECT mailroom_send(ARRAY['a@mail.example'], subject => 'a', text => 'a')");
  run_each(roles, "reader", {{"message", "list"}, {"message", "list", "--state", "waiting", "-o", "json"}});
  check_follows(roles, database, "reader");
  const auto reader = roles.connect("reader");
  check_refused(*reader, {"SELECT secret FROM tokens", "SELECT code FROM tokens", "SELECT * FROM tokens",
                          "UPDATE accounts SET status = 'suspended'", "UPDATE jobs SET last_seq = 0",
                          "DELETE FROM tokens", "INSERT INTO accounts (email, login) VALUES ('b', 'b')"});
  CHECK(run_as(roles, "reader", {"rewind-cursor", "--to-start", "-y"}).status == 1);
}

TEST_CASE("a collector's role that is told to repair a sequence learns which role can") {
  TestDatabase database;
  const DocumentedRoles roles(database);
  insert_accounts(roles.owner(), 30);
  REQUIRE(run_as(roles, "collector", {"collect", "--once"}).status == 0);
  const std::string owner =
      roles.owner().run("SELECT tableowner FROM pg_tables WHERE tablename = 'tokens'")[0][0].c_str();
  for (const std::string sequence : {"mailroom_batches_id_seq", "tokens_id_seq"}) {
    CAPTURE(sequence);
    roles.owner().run(fmt::format("ALTER SEQUENCE {} RESTART", sequence));
    const auto refused = run_as(roles, "collector", {"rewind-cursor", "--fix-sequence", "--yes"});
    CHECK(refused.status == 1);
    CAPTURE(refused.errors);
    CHECK(refused.errors.find(fmt::format("hint: run it as {}, the owner of the tables, or as", owner)) !=
          std::string::npos);
    CHECK(run_as(roles, "operator", {"rewind-cursor", "--fix-sequence", "--yes"}).status == 0);
  }
}

TEST_CASE("the documented operator runs the operator's commands, and cannot insert accounts") {
  TestDatabase database;
  const DocumentedRoles roles(database);
  insert_accounts(roles.owner(), 5);
  const auto collected = run_as(roles, "operator", {"collect", "--once", "--format", "csv"});
  REQUIRE(collected.status == 0);
  const auto third_comma =
      collected.output.find(',', collected.output.find(',', collected.output.find(',') + 1) + 1);
  const auto token = collected.output.substr(third_comma + 1, 86);
  roles.owner().run("UPDATE tokens SET expires_at = 1 WHERE id = 5");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"status"},
        {"tail", "-n", "100"},
        {"audit"},
        {"audit", "user1"},
        {"doctor"},
        {"verify", token},
        {"audit", token},
        {"verify", token, "-o", "json"},
        {"resend", "--since", "10m", "--dry-run"},
        {"rewind-cursor", "--to-id", "2", "--dry-run", "-o", "json"},
        {"rewind-cursor", "--to-time", "10m", "--dry-run"},
        {"rewind-cursor", "--to-end", "-y"},
        {"rewind-cursor", "--to-start", "--extend", "1h", "-y", "--reason", "x"},
        {"resend", "user2", "-y"},
        {"revoke", "user2", "-y", "--reason", "x"},
        {"collect", "--once"},
        {"suspend", "user3", "-y", "--reason", "x"},
        {"suspend", "--undo", "--replay", "user3", "-y"},
        {"queue", "create", "recovery", "--action", "recovery", "--rate", "14/s", "--budget", "shared",
         "--budget-rate", "100/min", "-y"},
        {"queue", "set", "recovery", "--rate", "none"},
        {"queue", "list"},
        {"queue", "pause", "recovery"},
        {"queue", "resume", "recovery"},
        {"queue", "drop", "recovery", "-y"},
        {"prune", "--older-than", "1h", "--dry-run"},
        {"prune", "--older-than", "1h", "-y"}}) {
    const auto run = run_as(roles, "operator", words);
    INFO(fmt::format("{} {}: {}{}", words[0], words.back(), run.output, run.errors));
    CHECK(run.status == 0);
  }
  roles.owner().run("SELECT setval('tokens_id_seq', 2)");
  const auto fixed = run_as(roles, "operator", {"rewind-cursor", "--fix-sequence", "-y"});
  INFO(fixed.errors);
  CHECK(fixed.status == 0);
  CHECK(value<int>(roles.owner(), "SELECT last_value FROM tokens_id_seq") == 5);
  roles.owner().run("UPDATE tokens SET expires_at = 1, created_at = 1");
  CHECK(run_as(roles, "operator", {"prune", "--older-than", "1h", "-y"}).status == 0);
  CHECK(value<int>(roles.owner(), "SELECT count(*) FROM tokens") == 0);
  const auto operators = roles.connect("operator");
  check_refused(
      *operators,
      {"INSERT INTO accounts (email, login) VALUES ('b', 'b')", "UPDATE accounts SET email = 'b'",
       "DELETE FROM accounts", "UPDATE tokens SET consumed_at = 1", "UPDATE tokens SET secret = 'x'",
       "DELETE FROM mailroom_operations", "UPDATE mailroom_operations SET actor = 'x'",
       "INSERT INTO mailroom_operations (kind, actor, at) VALUES ('prune', 'x', '2020-01-01')",
       "INSERT INTO mailroom_operations (kind, actor, db_user) VALUES ('prune', 'x', 'postgres')",
       "INSERT INTO mailroom_operations (id, kind, actor) OVERRIDING SYSTEM VALUE VALUES (1, 'prune', 'x')",
       "DELETE FROM mailroom_queues", "DROP TABLE tokens"});
}

TEST_CASE("a collector's metrics need only its role, and say what that does not see") {
  TestDatabase database;
  const DocumentedRoles roles(database);
  TestCollector collector(roles.conninfo("collector"), {"--metrics", "127.0.0.1:0", "--batch-limit", "1"});
  const auto address = metrics_address([&] { return collector.log(); });
  const auto open = database.connect();
  open->run("BEGIN");
  open->run("INSERT INTO accounts (email, login) VALUES ('open@mail.example', 'open')");
  insert_accounts(roles.owner(), 1);
  REQUIRE(eventually([&] { return collector.lines().size() == 1; }));
  Scrape scrape("");
  REQUIRE(eventually([&] {
    scrape = Scrape::of(address);
    return scrape.sum("mailroom_queue_gap_holders") == 1;
  }));
  INFO(scrape.text);
  CHECK(scrape.value("mailroom_database_up") == 1);
  CHECK(scrape.sum("mailroom_queue_gap_holders", "visible=\"false\"") == 1);
  CHECK(scrape.text.find("mailroom_queue_gap_holder_age_seconds{") == std::string::npos);
  CHECK(scrape.sum("mailroom_queue_problems", "code=\"gap_hidden\"") == 1);
  open->run("ROLLBACK");
}

TEST_CASE(
    "a collector that may not see other sessions collects, and says why its metrics lack the database") {
  TestDatabase database;
  const DocumentedRoles roles(database);
  roles.owner().run("REVOKE SELECT ON pg_stat_activity FROM PUBLIC");
  TestCollector collector(roles.conninfo("collector"), {"--metrics", "127.0.0.1:0", "--batch-limit", "1"});
  const auto address = metrics_address([&] { return collector.log(); });
  insert_accounts(roles.owner(), 1);
  REQUIRE(eventually([&] { return collector.lines().size() == 1; }));
  CHECK(Scrape::of(address).value("mailroom_database_up") == 0);
  CHECK(collector.log().find(
            "cannot be read for metrics reason=\"permission denied for view pg_stat_activity; "
            "PostgreSQL lets every role read it, so this right was revoked; mailroom doctor") !=
        std::string::npos);
  roles.owner().run("GRANT SELECT ON pg_stat_activity TO " + roles.name("collector"));
  CHECK(eventually([&] { return Scrape::of(address).value("mailroom_database_up") == 1; }));
  CHECK(collector.stop() == 0);
}

}  // namespace mailroom::test::roles_test
