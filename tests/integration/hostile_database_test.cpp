// Abnormal databases: times outside the calendar, no encoding, hidden rows, damage, the largest ids. Each
// command reports the condition or refuses; none prints anything wrong.

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "schema/schema_objects.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/test_queue.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::hostile_database_test {
namespace {

using Arguments = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a time outside the calendar is null in JSON, and never a wrong date in text") {
  TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig rig(database);
  insert_accounts(*connection, 1);
  connection->run("SET session_replication_role = replica");
  for (const std::string seconds : {"9223372036854775807", "253402300800", "-9223372036854775808"}) {
    INFO(seconds);
    connection->run(
        fmt::format("UPDATE tokens SET consumed_at = {0}, expires_at = {0} WHERE id = 1", seconds));
    const auto* honest = seconds.front() == '-' ? "before the year 0" : "after the year 9999";
    for (const Arguments& words : std::vector<Arguments>{{"audit", "token:1"},
                                                         {"audit", "user1"},
                                                         {"tail"},
                                                         {"tail", "--since", "1970-01-01"},
                                                         {"status"}}) {
      INFO(fmt::format("{}", fmt::join(words, " ")));
      const auto text = rig.mailroom(words);
      CHECK(text.status <= 8);
      CHECK_FALSE(contains(text.output + text.errors, "1969-"));
      CHECK_FALSE(contains(text.output + text.errors, "@" + seconds));
      CHECK_FALSE(contains(text.output + text.errors, "bug in mailroom"));
      if (words.front() == "audit") CHECK(contains(text.output, honest));
      auto json = words;
      json.insert(json.end(), {"-o", "json"});
      const auto lines = rig.mailroom(json);
      CHECK_FALSE(contains(lines.output, seconds));
      // A token's status in audit is a sentence, even in JSON.
      if (words.front() != "audit") CHECK_FALSE(contains(lines.output, "the year"));
    }
    const auto audit = rig.mailroom({"audit", "token:1", "-o", "json"});
    const auto token = parse_json(audit.output.substr(0, audit.output.find('\n')))["tokens"][0];
    CHECK(token["consumed_at"].is_null());
    CHECK(token["expires_at"].is_null());
  }
  // Statements that take such a time as an argument succeed.
  for (const std::string seconds : {"9223372036854775807", "253402300800", "-9223372036854775808"}) {
    connection->run(
        fmt::format("UPDATE tokens SET consumed_at = NULL, expires_at = 2000, created_at = {}", seconds));
    for (const Arguments& words : std::vector<Arguments>{{"audit", "token:1"},
                                                         {"audit", "user1"},
                                                         {"tail"},
                                                         {"rewind-cursor", "--to-start", "--dry-run"},
                                                         {"rewind-cursor", "--fix-sequence", "--dry-run"},
                                                         {"suspend", "user1", "-y"},
                                                         {"suspend", "--undo", "user1", "-y"},
                                                         {"prune", "--dry-run"}}) {
      INFO(fmt::format("{}: {}", seconds, fmt::join(words, " ")));
      const auto run = rig.mailroom(words);
      INFO(run.errors);
      CHECK(run.status == 0);
      CHECK_FALSE(run.output.empty());
    }
  }
}

TEST_CASE(
    "in a database without an encoding an invalid address is skipped, and the other tokens are emitted") {
  const TestDatabase database(TestDatabase::Schema::current,
                              "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
  const auto connection = database.connect();
  const OperatorRig rig(database);
  insert_accounts(*connection, 3);
  connection->run("UPDATE accounts SET email = E'caf\\xe9@test.example', login = E'caf\\xe9' WHERE id = 2");
  connection->run(
      "INSERT INTO mailroom_operations (kind, actor, reason, account, details) VALUES "
      "('suspend', E'\\xe9ve', E'caf\\xe9', 2, jsonb_build_object('before', E'\\xe9', 'after', E'\\xe9'))");
  const auto collected = rig.mailroom({"collect", "--once", "--format", "jsonl"});
  CHECK(collected.status == 0);
  CHECK(emitted_ids(collected.output) == std::map<std::int64_t, int>{{1, 1}, {3, 1}});
  CHECK(value<int>(*connection, "SELECT skipped_invalid FROM mailroom_batches") == 1);
  for (const std::string format : {"text", "json"}) {
    for (const Arguments& words : std::vector<Arguments>{{"tail"},
                                                         {"audit"},
                                                         {"audit", "id:2"},
                                                         {"audit", "token:2"},
                                                         {"audit", "batch:1"},
                                                         {"status"},
                                                         {"doctor"}}) {
      INFO(fmt::format("{} {}", fmt::join(words, " "), format));
      auto all = words;
      all.insert(all.end(), {"-o", format});
      const auto run = rig.mailroom(all);
      CHECK((run.status == 0 || run.status == 8));
      CHECK(is_utf8(run.output));
      CHECK(is_utf8(run.errors));
      if (words.front() == "tail" || words.back() == "id:2")
        CHECK(contains(run.output, format == "text" ? "caf?" : "caf\xEF\xBF\xBD"));
    }
  }
}

TEST_CASE("when row security hides rows, each command refuses to present a part as the whole") {
  const TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  const auto role = database.name() + "_reader";
  connection->run("CREATE ROLE " + role + " LOGIN");
  connection->run("GRANT ALL ON ALL TABLES IN SCHEMA public TO " + role);
  connection->run("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO " + role);
  const auto run = [&](Arguments words) {
    words.insert(words.begin(), mailroom_binary);
    return run_to_end(words, {{"MAILROOM_DATABASE_URL", database.conninfo() + " user=" + role},
                              {"MAILROOM_SECRET_KEY", test_key}});
  };
  const std::vector<Arguments> commands{{"audit"},
                                        {"audit", "user1"},
                                        {"audit", "token:1"},
                                        {"status"},
                                        {"tail"},
                                        {"verify", std::string(86, 'A')},
                                        {"suspend", "user1"},
                                        {"rewind-cursor", "--to-start", "--dry-run"},
                                        {"rewind-cursor", "--fix-sequence", "--dry-run"},
                                        {"collect", "--once"},
                                        {"prune", "--dry-run"}};
  for (const std::string table :
       {"accounts", "tokens", "mailroom_batches", "mailroom_queues", "schema_migrations"}) {
    connection->run("ALTER TABLE " + table + " ENABLE ROW LEVEL SECURITY");
    for (const auto& words : commands) {
      INFO(fmt::format("{} {}", table, fmt::join(words, " ")));
      const auto refused = run(words);
      CHECK(refused.status == static_cast<int>(ExitCode::failed));
      CHECK(refused.output.empty());
      CHECK(contains(refused.errors, "row security hides rows of " + table));
      CHECK(contains(refused.errors,
                     "hint: a policy does not help; as a superuser: ALTER ROLE " + role + " BYPASSRLS;"));
    }
    connection->run("ALTER TABLE " + table + " DISABLE ROW LEVEL SECURITY");
  }
  CHECK(run({"audit", "user1"}).status == 0);
  connection->run("ALTER TABLE schema_migrations ENABLE ROW LEVEL SECURITY");
  const auto refused = run({"migrate"});
  CHECK(contains(refused.errors, "row security hides rows of schema_migrations"));
  CHECK(contains(refused.errors, "ALTER TABLE public.schema_migrations DISABLE ROW LEVEL SECURITY;"));
  connection->run("DROP OWNED BY " + role);
  connection->run("DROP ROLE " + role);
}

TEST_CASE("row security stops a collector only where it hides rows that it reads; doctor reports all") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole role(database);
  connection->run("GRANT ALL ON ALL TABLES IN SCHEMA public TO " + role.name());
  connection->run("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO " + role.name());
  const auto run = [&](Arguments words) {
    words.insert(words.begin(), mailroom_binary);
    return run_to_end(words, {{"MAILROOM_DATABASE_URL", role.conninfo()}, {"MAILROOM_SECRET_KEY", test_key}});
  };
  std::int64_t accounts = 0;
  for (const auto& table : schema::mailroom_tables()) {
    CAPTURE(table);
    connection->run("ALTER TABLE " + table + " ENABLE ROW LEVEL SECURITY");
    // The version is read with the policies in force.
    connection->run(fmt::format("CREATE POLICY everybody ON {} USING (true)", table));
    insert_accounts(*connection, 1, fmt::format("user{}-", ++accounts));
    const auto collected = run({"collect", "--once"});
    CAPTURE(collected.errors);
    const auto reads = [&](const std::vector<std::string>& tables) {
      return std::find(tables.begin(), tables.end(), table) != tables.end();
    };
    CHECK(collected.status == (reads(schema::tables_of_claims()) ? 1 : 0));
    CHECK(run({"collect", "--once", "--exec", "/bin/false"}).status ==
          (reads(schema::tables_of_consumers()) ? 1 : 0));
    CHECK((run({"status"}).status == 1) == reads(schema::tables_of_consumers()));
    CHECK(contains(run({"doctor", "-o", "json"}).output, "row security hides rows of " + table));
    connection->run(fmt::format("DROP POLICY everybody ON {}", table));
    connection->run("ALTER TABLE " + table + " DISABLE ROW LEVEL SECURITY");
  }
}

TEST_CASE("a damaged schema is exit code 5 with a fix, whatever command finds it") {
  const std::vector<std::string> damages{"ALTER TABLE tokens RENAME COLUMN created_at TO made",
                                         "ALTER TABLE accounts RENAME COLUMN login TO name",
                                         "DROP TABLE mailroom_batches CASCADE",
                                         "DROP TABLE tokens CASCADE",
                                         "DROP FUNCTION mailroom_queue_state CASCADE",
                                         "DROP FUNCTION mailroom_token_state CASCADE",
                                         "DROP TYPE token_action CASCADE"};
  const std::vector<Arguments> commands{{"audit"},
                                        {"audit", "id:1"},
                                        {"audit", "token:1"},
                                        {"status"},
                                        {"tail"},
                                        {"suspend", "user1"},
                                        {"rewind-cursor", "--to-start", "--dry-run"},
                                        {"rewind-cursor", "--fix-sequence", "--dry-run"},
                                        {"prune", "--dry-run"},
                                        {"collect", "--once"}};
  for (const auto& damage : damages) {
    const TestDatabase database;
    const auto connection = database.connect();
    insert_accounts(*connection, 1);
    connection->run(damage);
    const OperatorRig rig(database);
    int refusals = 0;
    for (const auto& words : commands) {
      const auto run = rig.mailroom(words);
      INFO(fmt::format("{}: {}\n{}", damage, fmt::join(words, " "), run.errors));
      // status may report the queue as unhealthy without reading the missing object.
      if (run.status == 0 || run.status == static_cast<int>(ExitCode::unusable)) continue;
      ++refusals;
      CHECK(run.status == static_cast<int>(ExitCode::schema));
      CHECK((contains(run.errors, "hint: mailroom migrate verify") || contains(run.errors, "trigger")));
    }
    INFO(damage);
    CHECK(refusals >= 2);
  }
}

TEST_CASE("the largest possible token id is refused with a fix") {
  const TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig rig(database);
  const std::string last = "9223372036854775807";
  insert_accounts(*connection, 1);
  connection->run("SELECT setval('tokens_id_seq', " + last + ", false)");
  insert_accounts(*connection, 1, "late");
  REQUIRE(value<int>(*connection, "SELECT count(*) FROM tokens WHERE id = " + last) == 1);
  const std::vector<Arguments> commands{{"status"},
                                        {"tail"},
                                        {"audit", "user1"},
                                        {"audit", "token:1"},
                                        {"rewind-cursor", "--to-start", "--dry-run"},
                                        {"rewind-cursor", "--to-id", last, "--dry-run"},
                                        {"rewind-cursor", "--fix-sequence", "--dry-run"},
                                        {"collect", "--once", "--format", "jsonl"},
                                        {"prune", "--dry-run"}};
  std::string fix;
  for (const auto& words : commands) {
    const auto run = rig.mailroom(words);
    INFO(fmt::format("{}\n{}", fmt::join(words, " "), run.errors));
    CHECK(run.status == static_cast<int>(ExitCode::schema));
    CHECK(contains(run.errors, "tokens_id_seq is at " + last));
    fix = run.errors.substr(run.errors.find("hint: ") + 6);
  }
  CHECK(contains(rig.mailroom({"doctor", "-o", "json"}).output, "is at " + last));
  CHECK(rig.mailroom({"audit", "token:" + last}).status == static_cast<int>(ExitCode::usage));
  connection->run(fix);
  insert_accounts(*connection, 1, "next");
  const auto collected = rig.mailroom({"collect", "--once", "--format", "jsonl"});
  CHECK(collected.status == 0);
  CHECK(emitted_ids(collected.output) == std::map<std::int64_t, int>{{1, 1}, {2, 1}});
}

TEST_CASE("a password inside another part of a connection string is refused, and never shown") {
  const TestDatabase database;
  const std::string secret = "Pa55-of-nobody";
  const std::vector<std::string> urls{"dbname='postgres://u:" + secret + "@h/db'",
                                      "user='x password=" + secret + "' dbname=postgres",
                                      "host='postgres://u:" + secret + "@h/db'",
                                      "host='h PASSWORD = " + secret + "'",
                                      "dbname='host=h password=\\'" + secret + " x\\''",
                                      "postgresql://h/postgres%3A%2F%2Fu%3A" + secret + "%40h",
                                      "service='x password=" + secret + "'",
                                      "options='-c x.password=" + secret + "'"};
  for (const auto& url : urls) {
    for (const Arguments& words : std::vector<Arguments>{{"status"},
                                                         {"doctor"},
                                                         {"doctor", "-o", "json"},
                                                         {"config", "show"},
                                                         {"config", "check"},
                                                         {"tail"},
                                                         {"migrate", "status"},
                                                         {"collect", "--once", "--wait", "1ms"}}) {
      auto all = words;
      all.insert(all.begin(), mailroom_binary);
      const auto run = run_to_end(all, {{"MAILROOM_DATABASE_URL", url}, {"MAILROOM_SECRET_KEY", test_key}});
      INFO(fmt::format("{}\n{}\n{}", fmt::join(words, " "), run.output, run.errors));
      CHECK_FALSE(contains(run.output + run.errors, secret));
      CHECK(run.status == static_cast<int>(ExitCode::configuration));
    }
  }
  for (const std::string variable : {"PGDATABASE", "PGUSER", "PGHOST"}) {
    for (const Arguments& words :
         std::vector<Arguments>{{"status"}, {"doctor"}, {"doctor", "-o", "json"}, {"tail"}}) {
      for (const auto& value : {"postgres://u:" + secret + "@h/db", "x password=" + secret}) {
        auto all = words;
        all.insert(all.begin(), mailroom_binary);
        const auto run = run_to_end(
            all, {{"MAILROOM_DATABASE_URL", ""}, {"MAILROOM_SECRET_KEY", test_key}, {variable, value}});
        INFO(fmt::format("{} {}\n{}\n{}", variable, fmt::join(words, " "), run.output, run.errors));
        CHECK_FALSE(contains(run.output + run.errors, secret));
      }
    }
  }
}

TEST_CASE("a token given as a channel or a queue is not repeated") {
  const TestDatabase database;
  const OperatorRig rig(database);
  const std::string token =
      "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdEfGhIj";
  for (const auto& secret : {token, token.substr(0, 60), token.substr(0, 43)}) {
    for (const Arguments& words : std::vector<Arguments>{{"doctor", "--channel", secret},
                                                         {"doctor", "--channel", secret, "-o", "json"},
                                                         {"doctor", "--queue", secret},
                                                         {"status", "--queue", secret},
                                                         {"audit", "--queue", secret},
                                                         {"config", "show"}}) {
      auto all = words;
      all.insert(all.begin(), mailroom_binary);
      const auto run = run_to_end(all, {{"MAILROOM_DATABASE_URL", database.conninfo()},
                                        {"MAILROOM_SECRET_KEY", test_key},
                                        {"MAILROOM_CHANNEL_NAME", secret}});
      INFO(fmt::format("{}\n{}\n{}", fmt::join(words, " "), run.output, run.errors));
      CHECK_FALSE(contains(run.output + run.errors, secret));
    }
  }
}

}  // namespace mailroom::test::hostile_database_test
