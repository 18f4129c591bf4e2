// What others do to a schema that stays in use: they rename it, empty its tables, give a part of it to
// another owner, or move it to a system that sorts differently.

#include <fmt/format.h>

#include "support/doctor_rig.hpp"
#include "support/operator_rig.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::schema_repair_test {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* send = "mailroom_send('{a@mail.example}', subject => 's', text => 't')";

}  // namespace

TEST_CASE("after ALTER SCHEMA RENAME every command says what to do, and migrate repairs it") {
  const TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const OperatorRig shell(database);
  REQUIRE(shell.mailroom({"migrate", "--schema", "mailroom"}).status == 0);
  connection->run("ALTER SCHEMA mailroom RENAME TO \"new mail\"");
  CHECK_FALSE(refusal(*connection, fmt::format("SELECT \"new mail\".{}", send)).empty());
  for (const auto& command : std::vector<std::vector<std::string>>{
           {"status"},
           {"send", "--once", "--relay", "smtp://127.0.0.1:1", "--from", "a@mail.example"},
           {"doctor"}}) {
    auto words = command;
    words.insert(words.end(), {"--schema", "new mail"});
    const auto run = shell.mailroom(words);
    INFO(run.output << run.errors);
    CHECK(run.status != 0);
    CHECK(contains(run.output + run.errors, "this one was renamed"));
    CHECK(contains(run.output + run.errors, "mailroom migrate"));
  }
  CHECK(contains(shell.mailroom({"migrate", "verify", "--schema", "new mail"}).output, "it was renamed"));
  CHECK(shell.mailroom({"migrate", "--schema", "new mail"}).status == 0);
  CHECK(shell.mailroom({"migrate", "verify", "--schema", "new mail"}).status == 0);
  connection->run(fmt::format("SELECT \"new mail\".{}", send));
  connection->run("INSERT INTO \"new mail\".accounts (email, login) VALUES ('z@mail.example', 'z')");
  CHECK(contains(shell.mailroom({"migrate", "--schema", "new mail"}).output, "nothing to do"));
}

TEST_CASE("the rows that every database has come back by migrate when somebody has emptied all tables") {
  const TestDatabase database;
  const auto connection = database.connect();
  const OperatorRig shell(database);
  const DoctorRig doctor(database);
  connection->run("SELECT mailroom_create_action('magic_link', path => '/magic')");
  const auto empty = value<std::string>(
      *connection,
      "SELECT 'TRUNCATE ' || string_agg(oid::regclass::text, ', ') || ' CASCADE' FROM pg_class "
      "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'schema_migrations'");
  connection->run(empty);
  CHECK(
      contains(refusal(*connection, fmt::format("SELECT {}", send)), "23503 there is no action \"message\""));
  CHECK(contains(summary(doctor.examine("drift")),
                 "failure: the database lacks the action \"message\", which every database has"));
  const auto verified = shell.mailroom({"migrate", "verify"});
  CHECK(verified.status == 5);
  CHECK(contains(verified.output, "the action \"message\""));
  CHECK(shell.mailroom({"migrate"}).status == 0);
  CHECK(shell.mailroom({"migrate", "verify"}).status == 0);
  CHECK(all_fine(doctor.examine("drift")));
  CHECK(all_fine(doctor.examine("home")));
  connection->run(fmt::format("SELECT {}", send));
  connection->run("SELECT mailroom_create_action('magic_link', path => '/magic')");
  CHECK(value<int>(*connection, "SELECT number FROM mailroom_actions WHERE action = 'magic_link'") == 4);
  CHECK(contains(shell.mailroom({"migrate"}).output, "nothing to do"));
  // The rows of a copy that waits to be adopted do not come back.
  connection->run("DELETE FROM mailroom_home");
  CHECK(contains(shell.mailroom({"migrate"}).output, "nothing to do"));
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_home") == 0);
}

TEST_CASE(
    "tables and functions of different owners are a failure of doctor and verify, with the statements that end it") {
  const TestDatabase database;
  const auto connection = database.connect();
  const TestRole dbo(database, "dbo");
  const OperatorRig shell(database);
  const DoctorRig doctor(database);
  connection->run(fmt::format("GRANT ALL ON SCHEMA public TO {}", dbo.name()));
  check_fixing(*connection, doctor, "drift", doctor::CheckVerdict::failure,
               fmt::format("ALTER FUNCTION mailroom_cancel OWNER TO {}", dbo.name()));
  connection->run(
      fmt::format("DO $$ DECLARE r record; BEGIN FOR r IN SELECT oid::regclass AS name FROM pg_class "
                  "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP "
                  "EXECUTE format('ALTER TABLE %s OWNER TO {}', r.name); END LOOP; END $$",
                  dbo.name()));
  const auto verified = shell.mailroom({"migrate", "verify"});
  CHECK(verified.status == 5);
  CHECK(contains(verified.output, "ALTER FUNCTION public.mailroom_send("));
  REQUIRE(run_fixes(*connection, doctor.examine("drift")));
  CHECK(all_fine(doctor.examine("drift")));
  CHECK(shell.mailroom({"migrate", "verify"}).status == 0);
}

TEST_CASE("texts that must be unique sort by their bytes, but for those of the application") {
  const TestDatabase database;
  const auto connection = database.connect();
  CHECK(value<std::string>(*connection, R"(
SELECT coalesce(string_agg(DISTINCT x.relname, ' '), '')
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid, unnest(i.indcollation) u (used) LEFT JOIN pg_collation c ON c.oid = u.used
WHERE i.indisunique AND x.relnamespace = 'public'::regnamespace AND x.relname NOT LIKE 'accounts\_%' AND u.used <> 0
  AND c.collname <> 'C')") == "");
}

TEST_CASE("doctor reports the indexes that were built while the system sorted differently") {
  db::Connection admin("dbname=postgres", "test");
  const bool records_default =
      value<int>(admin, "SELECT current_setting('server_version_num')::int") >= 150000;
  const TestDatabase database(TestDatabase::Schema::none,
                              std::string("TEMPLATE template0 ENCODING UTF8") +
                                  (records_default ? " LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'" : ""));
  const auto connection = database.connect();
  migrate(*connection);
  const DoctorRig doctor(database);
  connection->run("CREATE COLLATION english (provider = icu, locale = 'en')");
  connection->run("CREATE INDEX accounts_by_name ON accounts ((login::text COLLATE english))");
  check_fixing(*connection, doctor, "drift", doctor::CheckVerdict::warning,
               "UPDATE pg_collation SET collversion = '1.0' WHERE collname = 'english'");
  if (!records_default) return;
  check_fixing(
      *connection, doctor, "drift", doctor::CheckVerdict::failure,
      fmt::format("UPDATE pg_database SET datcollversion = '1.0' WHERE datname = '{}'", database.name()));
}

}  // namespace mailroom::test::schema_repair_test
