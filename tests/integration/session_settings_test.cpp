// Every command with a role whose settings are hostile, and in a schema of its own beside an application's.

#include <fmt/format.h>

#include "base/json.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/test_collector.hpp"
#include "support/test_database.hpp"
#include "support/test_pooler.hpp"

namespace mailroom::test::session_settings_test {
namespace {

using Arguments = std::vector<std::string>;

struct Setting {
  std::string name, hostile, ours;
};

std::vector<Setting> hostile_settings(db::Connection& connection) {
  std::vector<Setting> settings{{"default_transaction_isolation", "serializable", "read committed"},
                                {"default_transaction_read_only", "on", "off"},
                                {"default_transaction_deferrable", "on", "off"},
                                {"synchronous_commit", "off", "on"},
                                {"row_security", "off", "on"},
                                {"standard_conforming_strings", "off", "on"},
                                {"backslash_quote", "off", "safe_encoding"},
                                {"array_nulls", "off", "on"},
                                {"transform_null_equals", "on", "off"},
                                {"exit_on_error", "on", "off"},
                                {"client_min_messages", "debug5", "error"},
                                {"bytea_output", "escape", "hex"},
                                {"quote_all_identifiers", "on", "off"},
                                {"datestyle", "SQL, DMY", "ISO, MDY"},
                                {"intervalstyle", "sql_standard", "postgres"},
                                {"timezone", "Pacific/Chatham", "UTC"},
                                {"extra_float_digits", "-15", "1"},
                                {"client_encoding", "LATIN1", "UTF8"},
                                {"lock_timeout", "2s", "0"},
                                {"statement_timeout", "2s", "0"},
                                {"idle_in_transaction_session_timeout", "2s", "0"},
                                {"idle_session_timeout", "2s", "0"},
                                {"transaction_timeout", "2s", "0"},
                                {"jit", "on", "off"},
                                {"plan_cache_mode", "force_custom_plan", "auto"},
                                {"join_collapse_limit", "1", "8"}};
  for (const std::string what : {"bitmapscan", "hashagg", "hashjoin", "indexonlyscan", "indexscan",
                                 "material", "mergejoin", "nestloop", "seqscan", "sort", "tidscan"})
    settings.push_back({"enable_" + what, "off", "on"});
  std::erase_if(settings, [&](const Setting& each) { return !knows_setting(connection, each.name); });
  return settings;
}

/// A role with all of hostile_settings(), which is dropped with the test.
class HostileRole {
 public:
  explicit HostileRole(const TestDatabase& database)
      : connection_(database.connect()), name_("hostile_" + database.name()) {
    connection_->run(fmt::format("CREATE ROLE {} LOGIN SUPERUSER", name_));
    for (const auto& setting : hostile_settings(*connection_))
      connection_->run(
          fmt::format("ALTER ROLE {} SET {} = {}", name_, setting.name,
                      setting.name == "datestyle" ? setting.hostile : "'" + setting.hostile + "'"));
    // Without any scan a plan costs so much that each session's first statement is compiled, for 50 ms; not
    // optimized as well.
    for (const std::string step : {"inline", "optimize"})
      connection_->run(fmt::format("ALTER ROLE {} SET jit_{}_above_cost = -1", name_, step));
  }
  ~HostileRole() {
    connection_->run("DROP OWNED BY " + name_ + " CASCADE");
    connection_->run("DROP ROLE " + name_);
  }
  HostileRole(const HostileRole&) = delete;
  HostileRole& operator=(const HostileRole&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::unique_ptr<db::Connection> connection_;
  std::string name_;
};

FinishedRun run(const std::string& conninfo, const Arguments& words, const std::string& schema = {}) {
  Arguments command{mailroom_binary};
  command.insert(command.end(), words.begin(), words.end());
  return run_to_end(command, {{"MAILROOM_DATABASE_URL", conninfo},
                              {"MAILROOM_DATABASE_SCHEMA", schema},
                              {"MAILROOM_SECRET_KEY", test_key}});
}

std::string joined(const Arguments& words) {
  std::string text;
  for (const auto& word : words)
    text += word + " ";
  return text;
}

/// Every command that uses the database, in an order in which each has something to do.
std::vector<Arguments> every_command() {
  return {{"migrate"},
          {"migrate", "status"},
          {"migrate", "verify"},
          {"migrate", "down", "2", "--yes"},
          {"migrate", "up", "--dry-run"},
          {"migrate"},
          {"simulate", "--accounts", "20"},
          {"collect", "--once", "--format", "jsonl"},
          {"queue", "list"},
          {"queue", "pause", "mailroom", "--yes"},
          {"queue", "resume", "mailroom", "--yes"},
          {"queue", "create", "recovery", "--action", "recovery", "--yes"},
          {"queue", "drop", "recovery", "--yes"},
          {"rewind-cursor", "--to-start", "--yes"},
          {"rewind-cursor", "--fix-sequence", "--yes"},
          {"collect", "--once"},
          {"status"},
          {"audit"},
          {"tail"},
          {"tail", "-f", "--count", "1"},
          {"reconcile", "--since", "1h"},
          {"prune", "--older-than", "1d", "--yes"},
          {"simulate", "--clean-up"},
          {"doctor"}};
}

}  // namespace

TEST_CASE("every session has the same settings, whatever its role has set") {
  TestDatabase database;
  const auto plain = database.connect();
  const HostileRole role(database);
  const auto conninfo = database.conninfo() + " user=" + role.name();
  db::Connection connection(conninfo, "test");
  for (const auto& [name, hostile, ours] : hostile_settings(*plain)) {
    INFO(name);
    CHECK(value<std::string>(connection, "SHOW " + name) == ours);
    CHECK(value<std::string>(*plain, "SHOW " + name) == ours);
  }
}

TEST_CASE("every command works with a role whose settings are hostile, as with any other") {
  TestDatabase plain(TestDatabase::Schema::none);
  TestDatabase database(TestDatabase::Schema::none);
  const HostileRole role(database);
  for (const auto& words : every_command()) {
    const auto expected = run(plain.conninfo(), words);
    const auto got = run(database.conninfo() + " user=" + role.name(), words);
    INFO(joined(words) << ": " << expected.errors << got.errors << got.output);
    CHECK(got.status == expected.status);
    CHECK((words.front() == "doctor" || got.status == 0));
  }
}

TEST_CASE("database.schema gives mailroom a schema of its own, which migrate creates") {
  const std::string schema = GENERATE("mailroom", "Team \"A\" d'or");
  TestDatabase database(TestDatabase::Schema::none);
  const auto application = database.connect();
  application->run("CREATE TABLE accounts (x int); CREATE TABLE tokens (x int); CREATE TABLE jobs (x int)");
  const auto early = run(database.conninfo(), {"status"}, schema);
  CHECK(early.status == 5);
  CHECK(early.errors.find("mailroom migrate creates it") != std::string::npos);
  CHECK(run(database.conninfo(), {"migrate", "--dry-run"}, schema).status == 5);
  for (const auto& words : every_command()) {
    const auto got = run(database.conninfo(), words, schema);
    INFO(joined(words) << ": " << got.errors << got.output);
    CHECK(got.status == 0);
  }
  CHECK(value<std::string>(*application,
                           "SELECT string_agg(relname, ',' ORDER BY relname) FROM pg_class WHERE "
                           "relnamespace = 'public'::regnamespace") == "accounts,jobs,tokens");
  for (const std::string table : {"accounts", "tokens", "jobs"})
    CHECK(value<int>(*application, "SELECT count(*) FROM public." + table) == 0);
}

TEST_CASE("database.schema finds pgcrypto in another schema") {
  TestDatabase database(TestDatabase::Schema::none);
  database.connect()->run("CREATE SCHEMA \"Ext\"; CREATE EXTENSION pgcrypto SCHEMA \"Ext\"");
  const auto migrated = run(database.conninfo(), {"migrate"}, "mailroom");
  INFO(migrated.errors);
  CHECK(migrated.status == 0);
  CHECK(run(database.conninfo(), {"migrate", "verify"}, "mailroom").status == 0);
  CHECK(run(database.conninfo(), {"simulate", "--accounts", "2"}, "mailroom").status == 0);
}

TEST_CASE("a role that may not create or use the configured schema is told what helps") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto owner = database.connect();
  const auto role = "visitor_" + database.name();
  owner->run("CREATE ROLE " + role + " LOGIN");
  const auto as_role = database.conninfo() + " user=" + role;
  const auto refused = run(as_role, {"migrate"}, "mailroom");
  CHECK(refused.status == 5);
  const auto create = fmt::format("CREATE SCHEMA mailroom AUTHORIZATION {};", role);
  CHECK(refused.errors.find(create) != std::string::npos);
  owner->run("CREATE SCHEMA mailroom");
  const auto unusable = run(as_role, {"status"}, "mailroom");
  CHECK(unusable.status == 5);
  CHECK(unusable.errors.find(fmt::format("GRANT USAGE ON SCHEMA mailroom TO {};", role)) !=
        std::string::npos);
  owner->run("DROP SCHEMA mailroom");
  owner->run("DROP ROLE " + role);
}

TEST_CASE(
    "behind a pooler in transaction mode a command has its settings and schema, and leaves none behind") {
  TestDatabase database(TestDatabase::Schema::none);
  REQUIRE(run(database.conninfo(), {"migrate"}, "mailroom").status == 0);
  const auto connection = database.connect();
  connection->run("ALTER DATABASE " + database.name() +
                  " SET default_transaction_isolation = 'serializable'");
  const TestPooler pooler(database, "transaction");
  for (const auto& words : std::vector<Arguments>{{"queue", "pause", "mailroom", "--yes"},
                                                  {"queue", "resume", "mailroom", "--yes"},
                                                  {"rewind-cursor", "--to-start", "--yes"},
                                                  {"status"},
                                                  {"audit"}}) {
    const auto got = run(pooler.conninfo(), words, "mailroom");
    INFO(joined(words) << ": " << got.errors);
    CHECK(got.status == 0);
  }
  pqxx::connection next(pooler.conninfo());
  pqxx::nontransaction application(next);
  CHECK(application.exec("SHOW search_path")[0][0].c_str() == std::string("\"$user\", public"));
  CHECK(application.exec("SHOW default_transaction_isolation")[0][0].c_str() == std::string("serializable"));
}

TEST_CASE("a collector behind a full pooler goes on with one session, and one SIGTERM stops it") {
  TestDatabase database;
  const auto connection = database.connect();
  const TestPooler pooler(database, "session", "default_pool_size = 1\nquery_wait_timeout = 0\n");
  insert_accounts(*connection, 6000);
  TestCollector collector(pooler.conninfo(), {"--format", "jsonl", "--batch-limit", "2000"});
  CHECK(eventually([&] { return emitted_ids(collector.output()).size() == 6000; }));
  CHECK(collector.stop() == 0);
}

TEST_CASE("a session that a full pooler lets wait ends when connect_timeout has passed") {
  TestDatabase database;
  const TestPooler pooler(database, "session", "default_pool_size = 1\nquery_wait_timeout = 0\n");
  const db::Connection first(pooler.conninfo(), "test");
  const auto refused = run(pooler.conninfo() + " connect_timeout=1", {"status"});
  CHECK(refused.status == 4);
  CHECK(refused.errors.find("no answer within 1s") != std::string::npos);
}

TEST_CASE("a session after a change of the password file has the new password") {
  TestDatabase database;
  TemporaryDirectory directory;
  const auto file = directory.path() / "password";
  const auto write = [&](const std::string& text) {
    std::ofstream(file) << text;
    std::filesystem::permissions(file,
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  };
  db::DatabaseTarget target(database.conninfo());
  target.password_file = file.string();
  write("old\n");
  CHECK(db::session_conninfo(target, "test").find("password=old") != std::string::npos);
  write("new\n");
  CHECK(db::session_conninfo(target, "test").find("password=new") != std::string::npos);
  std::filesystem::remove(file);
  CHECK_THROWS_AS(db::session_conninfo(target, "test"), db::ConnectionLost);
}

}  // namespace mailroom::test::session_settings_test
