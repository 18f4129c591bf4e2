// Commands in a schema without mailroom's tables say where they are, and migrate makes no second queue
// unasked.

#include "schema/schema_places.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/catch.hpp"
#include "support/doctor_rig.hpp"
#include "support/operator_rig.hpp"
#include "support/terminal.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::schema_places_test {
namespace {

using Arguments = std::vector<std::string>;

/// A role with a schema of its own name, in a database whose tables are in public.
struct OwnSchema {
  OwnSchema() {
    owner->run(
        fmt::format("CREATE ROLE {0} LOGIN; CREATE SCHEMA {0} AUTHORIZATION {0}; "
                    "GRANT CREATE ON DATABASE {1} TO {0}; GRANT ALL ON ALL TABLES IN SCHEMA public TO {0}; "
                    "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {0}; GRANT pg_monitor TO {0}",
                    role, database.name()));
  }
  ~OwnSchema() { owner->run(fmt::format("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", role)); }
  OwnSchema(const OwnSchema&) = delete;
  OwnSchema& operator=(const OwnSchema&) = delete;

  FinishedRun run(Arguments words, const std::string& options = {}) const {
    words.insert(words.begin(), mailroom_binary);
    return run_to_end(words, {{"MAILROOM_DATABASE_URL", fmt::format("{} user={}", database.conninfo(), role)},
                              {"MAILROOM_SECRET_KEY", test_key},
                              {"PGOPTIONS", options}});
  }

  TestDatabase database;
  std::unique_ptr<db::Connection> owner = database.connect();
  std::string role = database.name() + "_mr";
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::vector<Arguments> commands{{"status"},
                                      {"tail"},
                                      {"audit"},
                                      {"queue", "list"},
                                      {"collect", "--once"},
                                      {"reconcile"},
                                      {"prune", "--dry-run"},
                                      {"suspend", "user1", "--yes"},
                                      {"rewind-cursor", "--to-start", "--yes"},
                                      {"migrate"},
                                      {"migrate", "--dry-run"},
                                      {"migrate", "goto", "3"},
                                      {"migrate", "down"},
                                      {"migrate", "status"},
                                      {"migrate", "verify"},
                                      {"migrate", "baseline", "3"},
                                      {"migrate", "force", "none"}};

}  // namespace

TEST_CASE("in a schema without tables each command says which schema has them") {
  const OwnSchema rig;
  for (const auto& words : commands) {
    INFO(fmt::format("{}", fmt::join(words, " ")));
    const auto run = rig.run(words);
    CAPTURE(run.errors);
    CHECK(run.status == 5);
    CHECK(run.output.empty());
    CHECK(contains(run.errors,
                   fmt::format("the tables are in the schema public, but the schema {} comes before it in "
                               "the search_path \"$user\", public",
                               rig.role)));
    CHECK(contains(run.errors, "mailroom --schema public"));
  }
  CHECK(rig.owner->run(fmt::format("SELECT FROM pg_tables WHERE schemaname = '{}'", rig.role)).empty());
}

TEST_CASE("a schema that the role may not use is named, with the grant that helps") {
  const OwnSchema rig;
  rig.owner->run("REVOKE USAGE ON SCHEMA public FROM PUBLIC");
  for (const auto& words : {Arguments{"status"}, Arguments{"migrate"}}) {
    const auto run = rig.run(words);
    CHECK(run.status == 5);
    CHECK(contains(run.errors, "the tables are in the schema public, which the role may not use"));
    CHECK(contains(run.errors, fmt::format(": GRANT USAGE ON SCHEMA public TO {};\n", rig.role)));
  }
  // Without a schema of its own there is none to work in.
  rig.owner->run(fmt::format("DROP SCHEMA {}", rig.role));
  CHECK(contains(rig.run({"status"}).errors, "which the role may not use"));
}

TEST_CASE("migrate makes a second queue if it is told to, and status notices the first") {
  const OwnSchema rig;
  insert_accounts(*rig.owner, 2);
  REQUIRE(rig.run({"migrate", "--yes"}).status == 0);
  const auto status = rig.run({"status"});
  CHECK(status.status == 8);
  CHECK(contains(status.output, "unhealthy"));
  CHECK(contains(status.output, "hint: mailroom --schema public status shows"));
  DoctorRig doctor(rig.database);
  doctor.environment["MAILROOM_DATABASE_URL"] = fmt::format("{} user={}", rig.database.conninfo(), rig.role);
  CHECK(contains(summary(doctor.examine("collectors")), "2 tokens wait in the schema public"));
  // Not while a collector serves them.
  const auto collector = attach(rig.database);
  CHECK_FALSE(contains(rig.run({"status"}).output, "schema public"));
}

TEST_CASE("a schema that the session's own search_path names needs no question") {
  const OwnSchema rig;
  rig.owner->run(fmt::format("CREATE SCHEMA {0}_b AUTHORIZATION {0}; CREATE EXTENSION IF NOT EXISTS pgcrypto",
                             rig.role));
  // public is on this path too, so its tables may be the ones that are meant.
  CHECK(rig.run({"migrate"}, fmt::format("-csearch_path={}_b,public", rig.role)).status == 5);
  CHECK(rig.run({"migrate"}, fmt::format("-csearch_path={}_b", rig.role)).status == 0);
  CHECK(rig.run({"migrate"}, fmt::format("-csearch_path={}", rig.role)).status == 0);
}

TEST_CASE("the tables of another application in the current schema do not hide where ours are") {
  const TestDatabase database(TestDatabase::Schema::none);
  const auto owner = database.connect();
  owner->run("CREATE SCHEMA mailroom; CREATE EXTENSION pgcrypto");
  migrate(*std::make_unique<db::Connection>(database.conninfo() + " options=-csearch_path=mailroom,public",
                                            "test"));
  for (
      const std::string foreign :
      {"CREATE TABLE accounts (id int)", "CREATE TABLE schema_migrations (version varchar PRIMARY KEY)",
       "DROP TABLE schema_migrations, accounts; CREATE TABLE schema_migrations (version bigint, dirty boolean); "
       "INSERT INTO schema_migrations VALUES (20240101, false)"}) {
    INFO(foreign);
    owner->run(foreign);
    for (const auto& words : {Arguments{"status"}, Arguments{"migrate"}, Arguments{"migrate", "verify"}}) {
      const auto run = OperatorRig(database).mailroom(words);
      CAPTURE(run.errors);
      CHECK(run.status == 5);
      CHECK(contains(run.errors, "the tables are in the schema mailroom"));
    }
  }
}

TEST_CASE(
    "beside the tables of an application migrate asks on a terminal, and says elsewhere what it means") {
  const TestDatabase database(TestDatabase::Schema::none);
  const auto owner = database.connect();
  owner->run("CREATE TABLE orders (id int); CREATE VIEW sales AS SELECT 1 AS x");
  const std::map<std::string, std::string> environment{{"MAILROOM_DATABASE_URL", database.conninfo()}};
  const Arguments words{mailroom_binary, "migrate"};
  const auto refused = run_in_terminal(words, environment, 200, "n\n");
  CHECK(refused.status == 7);
  CHECK(contains(refused.output, "the schema public has 2 tables of others, such as orders"));
  CHECK_FALSE(schema::is_place(*owner));
  const auto dry = run_to_end({mailroom_binary, "migrate", "--dry-run"}, environment);
  CHECK(dry.errors.empty());
  const auto own = run_to_end({mailroom_binary, "migrate", "--schema", "mailroom"}, environment);
  CHECK(own.status == 0);
  CHECK(own.errors.empty());
  const auto run =
      run_to_end({mailroom_binary, "migrate", "--to", "0"},
                 {{"MAILROOM_DATABASE_URL", database.conninfo() + " options=-csearch_path=public"}});
  CHECK(run.status == 0);
  CHECK(run.errors.empty());
}

TEST_CASE("a script that migrates beside the tables of an application goes on, and its log says where to") {
  const TestDatabase database(TestDatabase::Schema::none);
  database.connect()->run("CREATE TABLE orders (id int)");
  const std::map<std::string, std::string> environment{{"MAILROOM_DATABASE_URL", database.conninfo()}};
  const auto run = run_to_end({mailroom_binary, "migrate"}, environment);
  CHECK(run.status == 0);
  CHECK(contains(run.errors, "the schema public has 1 table of others, such as orders"));
  CHECK(contains(run.errors, "mailroom --schema mailroom migrate"));
  // Once mailroom is there, it belongs there.
  CHECK(run_to_end({mailroom_binary, "migrate"}, environment).errors.empty());
}

}  // namespace mailroom::test::schema_places_test
