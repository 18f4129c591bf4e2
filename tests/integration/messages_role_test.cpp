// mailroom_send_row(), the rights of producers, and what default privileges give.

#include <fmt/format.h>

#include "schema/function_set.hpp"
#include "support/catch.hpp"
#include "support/test_queue.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::messages_role_test {
namespace {

/// Empty if `sql` succeeds.
std::string sqlstate_of(db::Connection& connection, const std::string& sql) {
  return refusal(connection, sql).substr(0, 5);
}

/// `welcome u@x.example de {"name": "U"}`: the messages that rows have made.
std::string rows_sent(db::Connection& connection) {
  const auto text = value<std::string>(
      connection,
      "SELECT coalesce(string_agg(format('%s %s %s %s', template, recipients[1], coalesce(locale, '-'), coalesce(data::text, "
      "'-')), '; ' ORDER BY id), '') FROM mailroom_messages");
  connection.run("DELETE FROM mailroom_messages");
  return text;
}

std::string trigger(const std::string& event, const std::string& arguments,
                    const std::string& table = "users") {
  return fmt::format("CREATE TRIGGER t{} AFTER {} ON {} FOR EACH ROW EXECUTE FUNCTION mailroom_send_row({})",
                     std::hash<std::string>{}(event + arguments), event, table, arguments);
}

constexpr const char* users =
    "CREATE TABLE users (id bigserial, email text, \"Locale\" text, name text, password text, born date)";

/// Who besides its owner may execute each function that runs with its owner's rights: `mailroom_send
/// everyone`.
std::string open_functions(db::Connection& connection) {
  return value<std::string>(
      connection,
      "SELECT coalesce(string_agg(format('%s %s', p.proname, coalesce(r.rolname, 'everyone')), ', ' ORDER BY 1), '') "
      "FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a LEFT JOIN pg_roles r ON r.oid = a.grantee "
      "WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef AND a.grantee <> p.proowner");
}

}  // namespace

TEST_CASE("a trigger mails rows that are inserted, changed in a named column, or deleted") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  connection.run(users);
  connection.run(trigger("INSERT", "'welcome', 'email', 'Locale', 'name', 'born'"));
  connection.run(trigger("UPDATE", "'changed', 'email', '', 'name'"));
  connection.run(trigger("DELETE", "'bye', 'email'"));
  connection.run(
      "INSERT INTO users (email, \"Locale\", name, password, born) VALUES ('a@x.example', 'de', 'A', 'secret', '2000-01-02'), "
      "('b@x.example', '', NULL, 'secret', NULL), (NULL, 'de', 'C', 'secret', NULL)");
  CHECK(
      rows_sent(connection) ==
      R"(welcome a@x.example de {"born": "2000-01-02", "name": "A"}; welcome b@x.example - {"born": null, "name": null})");
  connection.run("UPDATE users SET password = 'other', born = '2001-01-01'");
  CHECK(rows_sent(connection).empty());
  connection.run("UPDATE users SET name = 'Z' WHERE id < 3");
  CHECK(rows_sent(connection) ==
        R"(changed a@x.example - {"name": "Z"}; changed b@x.example - {"name": "Z"})");
  connection.run("UPDATE users SET email = 'c@x.example' WHERE id = 3");
  CHECK(rows_sent(connection) == R"(changed c@x.example - {"name": "C"})");
  connection.run("DELETE FROM users WHERE id = 1");
  CHECK(rows_sent(connection) == "bye a@x.example - -");
  connection.run("BEGIN");
  connection.run("DELETE FROM users");
  connection.run("ROLLBACK");
  CHECK(rows_sent(connection).empty());
}

TEST_CASE(
    "a trigger with a key mails once for a row, whichever partition it is in, and whoever changes the table") {
  const DatabaseRig rig;
  const TestRole owner(rig.database, "owner");
  const TestRole web(rig.database, "web");
  auto& connection = *rig.connection;
  connection.run(
      "CREATE TABLE users (id int, email text, country text) PARTITION BY LIST (country); "
      "CREATE TABLE users_at PARTITION OF users FOR VALUES IN ('at'); "
      "CREATE TABLE users_de PARTITION OF users DEFAULT");
  for (const auto* table : {"users", "users_at", "users_de"})
    connection.run(fmt::format("ALTER TABLE {} OWNER TO {}", table, owner.name()));
  connection.run("GRANT SELECT, INSERT, UPDATE, DELETE ON users TO " + web.name());
  connection.run("GRANT EXECUTE ON FUNCTION mailroom_send_row, mailroom_send, mailroom_cancel TO " +
                 owner.name());
  db::Connection as_owner(owner.conninfo(), "test");
  as_owner.run(trigger("INSERT", "'welcome', 'email', '', 'id', 'key:id'"));
  as_owner.run(trigger("UPDATE OF email", "'changed', 'email', 'key:email'"));
  db::Connection as_web(web.conninfo(), "test");
  as_web.run(
      "INSERT INTO users VALUES (1, 'a@x.example', 'at'), (2, 'b@x.example', 'at'), (NULL, 'c@x.example', 'at')");
  as_web.run("UPDATE users SET country = 'de'");
  CHECK(value<std::string>(
            connection,
            "SELECT string_agg(concat_ws(' ', recipients[1], idempotency_key, data), '; ' ORDER BY id) "
            "FROM mailroom_messages") ==
        "a@x.example welcome:users:1 {\"id\": 1}; b@x.example welcome:users:2 {\"id\": 2}; "
        "c@x.example {\"id\": null}; c@x.example {\"id\": null}");
  // A key is free once its mail will never leave.
  CHECK(value<std::string>(as_owner, "SELECT mailroom_cancel(idempotency_key => 'welcome:users:1')") ==
        "cancelled");
  as_web.run("UPDATE users SET country = 'at' WHERE id IN (1, 2)");
  CHECK(value<int>(connection,
                   "SELECT count(*) FROM mailroom_messages WHERE idempotency_key = 'welcome:users:1'") == 2);
  CHECK(value<int>(connection,
                   "SELECT count(*) FROM mailroom_messages WHERE idempotency_key = 'welcome:users:2'") == 1);
  as_web.run("UPDATE users SET email = 'z@x.example' WHERE id = 1");
  as_web.run("UPDATE users SET email = 'y@x.example' WHERE id = 1");
  as_web.run("UPDATE users SET email = 'z@x.example' WHERE id = 1");
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_messages WHERE template = 'changed'") == 2);
  connection.run(trigger("DELETE", "'bye', 'email', 'key:nothing'"));
  CHECK(sqlstate_of(as_web, "DELETE FROM users WHERE id = 2") == "42703");
}

TEST_CASE("tables of one name in the schemas of several tenants have keys of their own") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  for (const auto* schema : {"public", "\"Acme Ltd\"", "\"new\""}) {
    const auto table = fmt::format("{}.users", schema);
    connection.run(
        fmt::format("CREATE SCHEMA IF NOT EXISTS {}; CREATE TABLE {} (id int, email text)", schema, table));
    connection.run(trigger("INSERT", "'welcome', 'email', 'key:id'", table));
    connection.run(fmt::format("INSERT INTO {} VALUES (1, 'a@x.example')", table));
  }
  CHECK(value<std::string>(connection,
                           "SELECT string_agg(idempotency_key, '; ' ORDER BY id) FROM mailroom_messages") ==
        "welcome:users:1; welcome:Acme Ltd.users:1; welcome:new.users:1");
}

TEST_CASE("a trigger with wrong arguments or on a temporary table is an error that says so") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  connection.run(users);
  connection.run("CREATE TEMP TABLE mine (email text)");
  const std::string insert = "INSERT INTO users (email) VALUES ('a@x.example')";
  for (
      const auto& [made, error] : std::vector<std::pair<std::string, std::string>>{
          {trigger("INSERT", "'welcome'"), "39P01"},
          {trigger("INSERT", "'welcome', 'key:id'"), "39P01"},
          {trigger("INSERT", "'welcome', 'mail'"), "42703"},
          {trigger("INSERT", "'welcome', 'email', 'locale'"), "42703"},
          {"CREATE TRIGGER t BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION mailroom_send_row('welcome', 'email')",
           "39P01"},
          {"CREATE TRIGGER t AFTER INSERT ON users EXECUTE FUNCTION mailroom_send_row('welcome', 'email')",
           "39P01"}}) {
    INFO(made);
    connection.run("BEGIN");
    connection.run(made);
    CHECK(sqlstate_of(connection, insert) == error);
    connection.run("ROLLBACK");
  }
  connection.run(trigger("INSERT", "'welcome', 'email'", "mine"));
  CHECK(sqlstate_of(connection, "INSERT INTO mine VALUES ('a@x.example')") == "42809");
}

TEST_CASE(
    "the owner of a table is who asks, and needs the rights of a producer; who changes the table needs none") {
  const DatabaseRig rig;
  const TestRole owner(rig.database, "owner");
  const TestRole web(rig.database, "web");
  auto& connection = *rig.connection;
  connection.run(users);
  connection.run("ALTER TABLE users OWNER TO " + owner.name());
  connection.run("GRANT INSERT ON users TO " + web.name());
  connection.run("GRANT USAGE ON SEQUENCE users_id_seq TO " + web.name());
  db::Connection as_owner(owner.conninfo(), "test");
  CHECK(sqlstate_of(as_owner, trigger("INSERT", "'welcome', 'email'")) == "42501");
  connection.run("GRANT EXECUTE ON FUNCTION mailroom_send_row TO " + owner.name());
  as_owner.run(trigger("INSERT", "'welcome', 'email'"));
  db::Connection as_web(web.conninfo(), "test");
  const std::string insert = "INSERT INTO users (email) VALUES ('a@x.example')";
  CHECK(sqlstate_of(as_web, insert) == "42501");
  connection.run("GRANT EXECUTE ON FUNCTION mailroom_send TO " + owner.name());
  CHECK(sqlstate_of(as_web, insert).empty());
  CHECK(value<std::string>(connection, "SELECT enqueued_by FROM mailroom_messages") == owner.name());
  CHECK(sqlstate_of(as_web, "SELECT mailroom_send(ARRAY['a@x.example'], template => 't')") == "42501");
  CHECK(sqlstate_of(as_web, "SELECT id FROM mailroom_messages") == "42501");
}

TEST_CASE("an action that is reserved to a role is for its members, by each way in") {
  const DatabaseRig rig;
  const TestRole producer(rig.database, "producer");
  const TestRole signup(rig.database, "signup");
  auto& connection = *rig.connection;
  connection.run(fmt::format(
      "SELECT mailroom_create_action('magic_link', path => '/magic', producer => '{}')", signup.name()));
  connection.run("GRANT EXECUTE ON FUNCTION mailroom_send TO " + producer.name());
  connection.run("GRANT INSERT ON mailroom_messages TO " + producer.name());
  db::Connection session(producer.conninfo(), "test");
  const std::string call = "SELECT mailroom_send(ARRAY['a@x.example'], action => 'magic_link')";
  const std::string insert =
      "INSERT INTO mailroom_messages (recipients, action) VALUES ('{a@x.example}', 'magic_link')";
  CHECK(sqlstate_of(session, call) == "42501");
  CHECK(sqlstate_of(session, insert) == "42501");
  connection.run(fmt::format("GRANT {} TO {}", signup.name(), producer.name()));
  CHECK(sqlstate_of(session, call).empty());
  CHECK(sqlstate_of(session, insert).empty());
  // SET ROLE gives rights up.
  const TestRole web(rig.database, "web");
  connection.run(fmt::format("GRANT {} TO {}", web.name(), producer.name()));
  connection.run("GRANT EXECUTE ON FUNCTION mailroom_send, mailroom_cancel, mailroom_message_status TO " +
                 web.name());
  session.run("SET ROLE " + web.name());
  CHECK(sqlstate_of(session, call) == "42501");
  CHECK(sqlstate_of(session, "SELECT mailroom_cancel(3)") == "42501");
}

TEST_CASE("a signed link has its secret wherever pgcrypto is") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  connection.run("SELECT mailroom_create_action('magic_link', path => '/magic')");
  connection.run("CREATE SCHEMA extensions; ALTER EXTENSION pgcrypto SET SCHEMA extensions");
  for (int i = 0; i < 2; ++i)
    connection.run("SELECT mailroom_send(ARRAY['a@x.example'], action => 'magic_link')");
  CHECK(value<int>(connection,
                   "SELECT count(DISTINCT secret)::int FROM tokens WHERE octet_length(secret) = 32") == 2);
}

TEST_CASE("default privileges give no function that runs with its owner's rights; what is granted stays") {
  const TestDatabase database(TestDatabase::Schema::none);
  const TestRole other(database, "other");
  const auto connection = database.connect();
  connection->run("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO " + other.name());
  migrate(*connection);
  CHECK(open_functions(*connection).empty());
  connection->run("GRANT EXECUTE ON FUNCTION mailroom_send, mailroom_send_row, trg_after_message_insert TO " +
                  other.name());
  connection->run(schema::embedded_functions().migration.up);
  CHECK(open_functions(*connection) == fmt::format("mailroom_send {0}, mailroom_send_row {0}", other.name()));
  connection->run("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM " + other.name());
}

TEST_CASE("default privileges give no table and no sequence that a migration makes; what is granted stays") {
  const TestDatabase database(TestDatabase::Schema::none);
  const TestRole other(database, "other");
  const auto connection = database.connect();
  for (const auto* objects : {"TABLES", "SEQUENCES"}) {
    for (const auto& grantee : {other.name(), std::string("PUBLIC")})
      connection->run(fmt::format("ALTER DEFAULT PRIVILEGES GRANT ALL ON {} TO {}", objects, grantee));
  }
  const auto given = [&] {
    return value<std::string>(*connection, R"(
SELECT coalesce(string_agg(DISTINCT c.relname || ' ' || a.privilege_type, ', '), '') FROM pg_class c, aclexplode(c.relacl) a
WHERE c.relnamespace = 'public'::regnamespace AND a.grantee <> c.relowner)");
  };
  migrate(*connection);
  CHECK(given() == "mailroom_home SELECT, mailroom_owners SELECT");
  connection->run("GRANT SELECT ON mailroom_messages TO " + other.name());
  connection->run(schema::embedded_functions().migration.up);
  CHECK(given() == "mailroom_home SELECT, mailroom_messages SELECT, mailroom_owners SELECT");
  // The record is made when the first version is recorded, which may be after all of them.
  connection->run("DROP TABLE mailroom_schema_history");
  connection->transact([](pqxx::work& transaction) {
    schema::record_history(transaction, schema::embedded_functions().migration, "up", {}, test_author());
  });
  CHECK(given() == "mailroom_home SELECT, mailroom_messages SELECT, mailroom_owners SELECT");
  for (const auto* objects : {"TABLES", "SEQUENCES"}) {
    for (const auto& grantee : {other.name(), std::string("PUBLIC")})
      connection->run(fmt::format("ALTER DEFAULT PRIVILEGES REVOKE ALL ON {} FROM {}", objects, grantee));
  }
}

TEST_CASE("what default privileges gave on the original's tables stays where they were used before") {
  const TestDatabase database(TestDatabase::Schema::none);
  const TestRole other(database, "other");
  const auto connection = database.connect();
  connection->run("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO " + other.name());
  connection->run(schema::embedded_migrations().front().up);
  connection->run("INSERT INTO accounts (email, login) VALUES ('a@x.example', 'a')");
  migrate(*connection);
  const auto given = fmt::format(R"(
SELECT string_agg(c.relname, ' ' ORDER BY c.relname) FROM pg_class c, aclexplode(c.relacl) a
WHERE a.grantee = '{}'::regrole)",
                                 other.name());
  CHECK(value<std::string>(*connection, given) == "accounts jobs tokens");
  connection->run("ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM " + other.name());
}

TEST_CASE("a consumer records what it notes of itself, and nothing else") {
  const DatabaseRig rig;
  const TestRole role(rig.database);
  rig.connection->run("GRANT EXECUTE ON FUNCTION mailroom_record_event TO " + role.name());
  db::Connection consumer(role.conninfo(), "test");
  consumer.run(
      "SELECT mailroom_record_event('reload', 'mailroom', '{\"changed\": 1}'), mailroom_record_event('went back', NULL, NULL)");
  for (const auto* kind : {"'prune'", "'rewind'", "NULL"})
    CHECK(sqlstate_of(consumer, fmt::format("SELECT mailroom_record_event({}, NULL, NULL)", kind)) ==
          "22023");
  CHECK(sqlstate_of(consumer, "INSERT INTO mailroom_operations (kind, actor) VALUES ('reload', 'x')") ==
        "42501");
  CHECK(value<std::string>(
            *rig.connection,
            "SELECT string_agg(format('%s %s %s', kind, coalesce(queue, '-'), db_user), ', ' ORDER BY id) "
            "FROM mailroom_operations") == fmt::format("reload mailroom {0}, went back - {0}", role.name()));
}

}  // namespace mailroom::test::messages_role_test
