// Tables and records that another tool or person created: what they are recognised as, and what is refused.

#include <fmt/format.h>

#include "schema/migrator.hpp"
#include "schema/verification.hpp"
#include "support/catch.hpp"
#include "support/test_database.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::recognition_test {
namespace {

struct PsqlDatabase : DatabaseRig {
  explicit PsqlDatabase(const std::string& more = "") : DatabaseRig(TestDatabase::Schema::none) {
    connection->run(schema::embedded_migrations()[0].up);
    if (!more.empty()) connection->run(more);
  }

  /// A migration's error, message and hint; empty if it succeeds.
  std::string refusal() {
    try {
      migrate(*connection);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::schema);
      CHECK(value<bool>(*connection, "SELECT to_regclass('mailroom_schema_history') IS NULL"));
      return fmt::format("{} | {}", error.what(), error.hint());
    }
    return {};
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string text_of_drift(db::Connection& connection) {
  std::string text;
  for (const auto& difference : schema::verify_schema(connection).drift.differences)
    text += (text.empty() ? "" : " ") + difference.name;
  return text;
}

}  // namespace

TEST_CASE("tables that fit neither version are refused, with the differences and the offer of a baseline") {
  PsqlDatabase one("ALTER TABLE tokens ALTER expires_at SET DEFAULT 0");
  CHECK(
      one.refusal() ==
      "mailroom's tables have no recorded version, and match neither the first nor the newest: one thing differs "
      "from version 0, the nearer (column tokens.expires_at) | mailroom migrate verify shows the differences; fix "
      "them, or record the version V that made the tables, which is compared with them: mailroom migrate "
      "baseline V");
  PsqlDatabase many(
      "DROP TABLE jobs; ALTER TABLE accounts DROP login, DROP email, ALTER status DROP DEFAULT");
  const auto refusal = many.refusal();
  CHECK(contains(refusal, "6 things differ from version 0"));
  CHECK(contains(refusal, "(table jobs, column accounts.email, column accounts.login and 3 more)"));
}

TEST_CASE("additions by an application do not stop a migration") {
  PsqlDatabase added("ALTER TABLE accounts ADD phone text UNIQUE; CREATE INDEX mine ON tokens (account)");
  CHECK(added.refusal() == "");
  const auto verification = schema::verify_schema(*added.connection);
  CHECK(verification.is_sound());
  CHECK(verification.drift.additions.size() == 3);
}

TEST_CASE("tables of a version between the first and the newest are refused until that version is recorded") {
  PsqlDatabase middle;
  for (const std::size_t version : {1U, 2U})
    middle.connection->run(schema::embedded_migrations()[version].up);
  const auto refusal = middle.refusal();
  CHECK(contains(refusal, "match neither the first nor the newest"));
  CHECK(contains(refusal, "record the version V that made the tables"));
  CHECK_FALSE(schema::verify_before_claim(*middle.connection, 1).is_sound());
  CHECK(schema::verify_before_claim(*middle.connection, 2).is_sound());
  schema::Migrator(*middle.connection, test_author()).claim(2);
  middle.connection->run("SELECT pg_advisory_unlock_all()");
  migrate(*middle.connection);
  CHECK(schema::verify_schema(*middle.connection).is_sound());
}

TEST_CASE("a version of an unreleased mailroom is refused by every command, and leads on from version 0") {
  PsqlDatabase unreleased;
  auto& connection = *unreleased.connection;
  // Its version 1 changed accounts, and a later one the tokens.
  connection.run(
      "ALTER TABLE accounts ALTER created_at TYPE bigint; CREATE TABLE schema_migrations (version bigint, dirty boolean)");
  for (const auto version : {1, 5, 26}) {
    CAPTURE(version);
    connection.run("DELETE FROM schema_migrations; INSERT INTO schema_migrations VALUES (" +
                   std::to_string(version) + ", false)");
    const auto refusal = unreleased.refusal();
    CHECK(refusal.starts_with("the schema is that of an unreleased mailroom, which no release upgrades | "));
    CHECK(contains(refusal, "mailroom migrate goto 0 with the mailroom that made it"));
    CHECK_THROWS_AS(schema::require_current_schema(connection), Error);
    CHECK_THROWS_AS(schema::verify_schema(connection), Error);
    CHECK_THROWS_AS(schema::verify_before_claim(connection, 1), Error);
    connection.run("SELECT pg_advisory_unlock_all()");
  }
  connection.run(
      "ALTER TABLE accounts ALTER created_at TYPE integer; UPDATE schema_migrations SET version = 0");
  CHECK(unreleased.refusal().empty());
  CHECK(schema::verify_schema(connection).is_sound());
}

TEST_CASE("the batches of an unreleased mailroom are recognised, whoever recorded its version") {
  const bool is_recorded = GENERATE(true, false);
  CAPTURE(is_recorded);
  const TestDatabase database;
  const auto connection = database.connect();
  connection->run("ALTER TABLE mailroom_batches RENAME queue TO job_type");
  connection->run(is_recorded ? "UPDATE schema_migrations SET version = 26" : "DROP TABLE schema_migrations");
  CHECK_THROWS_WITH(migrate(*connection),
                    "the schema is that of an unreleased mailroom, which no release upgrades");
  CHECK_THROWS_WITH(schema::require_current_schema(*connection),
                    "the schema is that of an unreleased mailroom, which no release upgrades");
}

TEST_CASE("the earlier form is recognised, and its conversion leads to version 0") {
  PsqlDatabase earlier(
      "ALTER TABLE tokens ALTER secret DROP DEFAULT, ALTER secret TYPE varchar(64) USING encode(secret, "
      "'hex'), "
      "ALTER secret SET DEFAULT encode(gen_random_bytes(32), 'hex');"
      "ALTER TYPE job_type RENAME VALUE 'mailroom' TO 'user_action_queue';"
      "CREATE OR REPLACE FUNCTION trg_after_token_inserted() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN NOTIFY token_inserted; RETURN NULL; END';"
      "INSERT INTO accounts (email, login) VALUES ('a@x.example', 'a')");
  const auto secret = value<std::string>(*earlier.connection, "SELECT secret FROM tokens");
  CHECK(contains(earlier.refusal(), "an earlier form of the schema: tokens.secret is hexadecimal text"));
  CHECK(schema::verify_schema(*earlier.connection).match == schema::SchemaMatch::earlier_form);
  CHECK_THROWS_AS(schema::verify_before_claim(*earlier.connection, 0), Error);
  earlier.connection->run(schema::earlier_form_conversion(schema::verify_schema(*earlier.connection)));
  CHECK(schema::verify_schema(*earlier.connection).match == schema::SchemaMatch::fits);
  CHECK(earlier.refusal() == "");
  CHECK(value<std::string>(*earlier.connection, "SELECT encode(secret, 'hex') FROM tokens") == secret);
  CHECK(schema::verify_schema(*earlier.connection).is_sound());
}

TEST_CASE("the record of a tool that uses another name is ignored") {
  PsqlDatabase ours("CREATE TABLE flyway_schema_history (id int)");
  CHECK(ours.refusal() == "");
  CHECK(schema::verify_schema(*ours.connection).is_sound());
}

TEST_CASE("a record of another shape is refused, and baseline serves once it is renamed") {
  for (const auto& [columns, what] : std::vector<std::pair<std::string, std::string>>{
           {"version varchar(128) PRIMARY KEY",
            "(version character varying(128)) belongs to another tool, probably dbmate"},
           {"version varchar NOT NULL", "(version character varying) belongs to another tool"},
           {"version bigint, inserted_at timestamp(0)",
            "(version bigint, inserted_at timestamp(0) without time zone) belongs to another tool"},
           {"version integer, dirty boolean", "(version integer, dirty boolean) belongs to another tool"}}) {
    CAPTURE(columns);
    PsqlDatabase database("CREATE TABLE schema_migrations (" + columns + ")");
    database.connection->run("INSERT INTO schema_migrations (version) VALUES ('7')");
    const auto refusal = database.refusal();
    CHECK(refusal.find("the table schema_migrations " + what + " | ") == 0);
    CHECK(contains(refusal, "database.schema: mailroom"));
    CHECK(contains(refusal, "rename its table and run mailroom migrate baseline V"));
    CHECK(value<std::string>(*database.connection, "SELECT version FROM schema_migrations") == "7");
    database.connection->run("ALTER TABLE schema_migrations RENAME TO theirs");
    schema::Migrator(*database.connection, test_author()).claim(0);
    migrate(*database.connection);
    CHECK(schema::verify_schema(*database.connection).is_sound());
    CHECK(value<std::string>(*database.connection, "SELECT version FROM theirs") == "7");
  }
}

TEST_CASE("foreign tables with our names, and a foreign record, are left alone") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const auto refusal = [&] {
    try {
      migrate(*connection);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  connection->run("CREATE TABLE accounts (iban text)");
  CHECK(refusal() == "the schema public has tables with mailroom's names that mailroom did not create");
  connection->run(
      "DROP TABLE accounts; CREATE TABLE schema_migrations (version bigint, dirty boolean); "
      "INSERT INTO schema_migrations VALUES (20240101120000, false)");
  CHECK(refusal() == "schema_migrations says version 20240101120000, but none of mailroom's tables exists");
}

TEST_CASE("a baseline records a row of history for each version up to it, and accepts an edited text") {
  PsqlDatabase database("ALTER TABLE tokens ALTER expires_at SET DEFAULT 0");
  CHECK(text_of_drift(*database.connection) == "tokens.expires_at");
  schema::Migrator(*database.connection, test_author()).claim(0);
  CHECK(value<std::string>(*database.connection,
                           "SELECT format('%s %s %s %s', version, name, direction, actor) FROM "
                           "mailroom_schema_history") == "0 init baseline test@host");
  CHECK_FALSE(schema::read_schema_state(*database.connection).unrecorded);
  migrate(*database.connection);
  database.connection->run(
      "UPDATE mailroom_schema_history SET checksum = 'of another text' WHERE version = 5");
  CHECK(schema::verify_schema(*database.connection).edited.size() == 1);
  database.connection->run("SELECT pg_advisory_unlock_all()");
  schema::Migrator(*database.connection, test_author()).claim(schema::embedded_migrations().back().version);
  CHECK(schema::verify_schema(*database.connection).edited.empty());
}

TEST_CASE("a comparison without the use of pgcrypto's schema is refused with the grant") {
  const TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const TestRole owner(database, "owner");
  connection->run("CREATE SCHEMA ext; CREATE EXTENSION pgcrypto SCHEMA ext; GRANT USAGE ON SCHEMA ext TO " +
                  owner.name());
  connection->run("GRANT ALL ON SCHEMA public TO " + owner.name() + "; GRANT CREATE ON DATABASE " +
                  database.name() + " TO " + owner.name());
  db::Connection session(owner.conninfo(), "test");
  migrate(session);
  CHECK(schema::verify_schema(session).is_sound());
  connection->run("REVOKE USAGE ON SCHEMA ext FROM " + owner.name());
  try {
    schema::verify_schema(session);
    FAIL("it was compared");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::schema);
    CHECK(contains(error.what(), "may not use the schema ext of the extension pgcrypto"));
    CHECK(error.hint() == "GRANT USAGE ON SCHEMA ext TO " + owner.name() + ";");
    connection->run(error.hint());
  }
  CHECK(schema::verify_schema(session).is_sound());
}

TEST_CASE("a search_path without an existing schema is refused") {
  PsqlDatabase database;
  database.connection->run("SET search_path = nowhere");
  CHECK(
      database.refusal() ==
      "the tables are in the schema public, but the search_path is nowhere | run it as mailroom --schema public, or set "
      "database.schema to public");
  database.connection->run("DROP TABLE public.accounts, public.tokens, public.jobs CASCADE");
  CHECK(database.refusal() == "no schema of the search_path exists | create it, or fix the search_path");
}

TEST_CASE("a newer schema is usable as far as it declares so") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto newest = schema::embedded_migrations().back().version;
  CHECK(schema::read_minimum_client(*connection) <= newest);
  const auto declare = [&](long minimum) {
    connection->run(
        fmt::format("CREATE OR REPLACE FUNCTION mailroom_minimum_client() RETURNS bigint LANGUAGE sql "
                    "IMMUTABLE PARALLEL SAFE RETURN {}",
                    minimum));
  };
  connection->run("UPDATE schema_migrations SET version = 9000");
  CHECK_NOTHROW(schema::require_current_schema(*connection));
  declare(newest);
  CHECK_NOTHROW(schema::require_current_schema(*connection));
  declare(newest + 1);
  CHECK_THROWS_AS(schema::require_current_schema(*connection), Error);
  connection->run("DROP FUNCTION mailroom_minimum_client()");
  CHECK_NOTHROW(schema::require_current_schema(*connection));
}

TEST_CASE("no migration declares a minimum above itself, and each down restores the previous minimum") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  std::vector<long> declared;
  auto versions = schema::embedded_migrations();
  versions.push_back(schema::embedded_functions().migration);
  for (const auto& migration : versions) {
    declared.push_back(schema::read_minimum_client(*connection));
    connection->run(migration.up);
    CHECK(schema::read_minimum_client(*connection) <= migration.version);
  }
  // One that knows no messages would take them for recoveries.
  CHECK(schema::read_minimum_client(*connection) == 8);
  for (auto version = versions.size(); version-- > 0;) {
    connection->run(versions[version].down);
    CHECK(schema::read_minimum_client(*connection) == declared[version]);
  }
}

}  // namespace mailroom::test::recognition_test
