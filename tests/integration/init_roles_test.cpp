// mailroom init --roles: what it prints, whom it needs, and that it can be run again.

#include <fmt/format.h>

#include "schema/roles.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/test_database.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::init_roles_test {
namespace {

/// A schema of its own whose owner is no superuser. Roles end with the test.
struct RolesRig {
  TestDatabase database{TestDatabase::Schema::none};
  TestRole boss{database, "boss"};
  std::string prefix = database.name() + "_x";

  RolesRig() {
    database.connect()->run(fmt::format("ALTER DATABASE {} OWNER TO {}", database.name(), boss.name()));
    REQUIRE(mailroom({"migrate"}).status == 0);
  }
  ~RolesRig() {
    const auto connection = database.connect();
    for (const auto& row :
         connection->run("SELECT rolname FROM pg_roles WHERE starts_with(rolname, $1)", prefix + "_")) {
      connection->run(fmt::format("DROP OWNED BY {}", row[0].c_str()));
      connection->run(fmt::format("DROP ROLE {}", row[0].c_str()));
    }
  }
  RolesRig(const RolesRig&) = delete;
  RolesRig& operator=(const RolesRig&) = delete;

  FinishedRun mailroom(std::vector<std::string> words, const std::string& user = {}) const {
    words.insert(words.begin(), mailroom_binary);
    const auto url = user.empty() ? boss.conninfo() : fmt::format("{} user={}", database.conninfo(), user);
    return run_to_end(words, {{"MAILROOM_DATABASE_URL", url}, {"MAILROOM_DATABASE_SCHEMA", "mailroom"}});
  }
  FinishedRun make(std::vector<std::string> more = {}, const std::string& user = {}) const {
    std::vector<std::string> words{"init", "--roles", "--prefix", prefix};
    words.insert(words.end(), more.begin(), more.end());
    return mailroom(words, user);
  }
  int role_count() const {
    return database.connect()
        ->run("SELECT count(*)::int FROM pg_roles WHERE starts_with(rolname, $1)", prefix + "_")
        .value<int>();
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("init --roles says whom it needs, and what that one types") {
  RolesRig rig;
  const auto refused = rig.make();
  CHECK(refused.status == 1);
  CHECK(has(refused.errors, rig.boss.name() + " may not create roles: it lacks CREATEROLE"));
  CHECK(has(refused.errors, fmt::format("CREATE ROLE {}_producer NOLOGIN;", rig.prefix)));
  CHECK(rig.role_count() == 0);
  // The SQL is for a superuser.
  const auto printed = rig.make({"--dry-run"});
  CHECK(printed.status == 0);
  CHECK(rig.role_count() == 0);
  rig.database.connect()->run(printed.output);
  CHECK(rig.role_count() == std::ssize(schema::roles()));
  // Then the owner grants what is new.
  const auto again = rig.make();
  INFO(again.errors);
  CHECK(again.status == 0);
  CHECK(again.errors.empty());
  CHECK(has(again.output, rig.prefix + "_producer    granted"));
}

TEST_CASE("an owner who may create roles makes them, and says what only another may grant") {
  RolesRig rig;
  rig.database.connect()->run(fmt::format("ALTER ROLE {} CREATEROLE", rig.boss.name()));
  const auto made = rig.make();
  INFO(made.errors);
  CHECK(made.status == 0);
  CHECK(has(made.output, rig.prefix + "_producer    created"));
  const bool is_told = has(made.errors, fmt::format("GRANT pg_monitor TO {}_reader;", rig.prefix));
  const auto version =
      rig.database.connect()->run("SELECT current_setting('server_version_num')::int").value<int>();
  CHECK(is_told == (version >= 160000));
  const auto producer = fmt::format("{}_producer", rig.prefix);
  const auto owner = rig.database.connect();
  owner->run(fmt::format("CREATE ROLE {}_login LOGIN IN ROLE {}", rig.prefix, producer));
  db::Connection application(fmt::format("{} user={}_login", rig.database.conninfo(), rig.prefix), "test");
  CHECK(value<int>(application,
                   "SELECT mailroom.mailroom_send(ARRAY['a@x.example'], subject => 's', text => 't')") == 1);
}

TEST_CASE("run again, init --roles grants what is missing, and takes nothing away") {
  RolesRig rig;
  REQUIRE(rig.make({}, "postgres").status == 0);
  const auto owner = rig.database.connect();
  owner->run(
      fmt::format("REVOKE ALL ON mailroom.mailroom_attachments FROM {0}_producer; GRANT SELECT (email) ON "
                  "mailroom.accounts TO {0}_app; REVOKE {0}_reader FROM {0}_operator",
                  rig.prefix));
  REQUIRE(rig.make({}, "postgres").status == 0);
  CHECK(value<bool>(
      *owner,
      fmt::format("SELECT has_table_privilege('{0}_producer', 'mailroom.mailroom_attachments', 'INSERT') AND "
                  "has_column_privilege('{0}_app', 'mailroom.accounts', 'email', 'SELECT') AND "
                  "pg_has_role('{0}_operator', '{0}_reader', 'MEMBER')",
                  rig.prefix)));
}

TEST_CASE(
    "init --roles refuses a prefix that needs quotes, what is not its own, and a database without a schema") {
  RolesRig rig;
  for (const auto* prefix : {"", "Shop", "1x", "a-b", "x; DROP ROLE y", "pg_x"}) {
    CAPTURE(prefix);
    CHECK(rig.mailroom({"init", "--roles", "--prefix", prefix}).status == 2);
  }
  CHECK(rig.mailroom({"init", "--roles", "--to", "a@x.example"}).status == 2);
  CHECK(rig.mailroom({"init", "--dry-run"}).status == 2);
  const TestDatabase empty(TestDatabase::Schema::none);
  const auto refused =
      run_to_end({mailroom_binary, "init", "--roles"}, {{"MAILROOM_DATABASE_URL", empty.conninfo()}});
  CHECK(refused.status == 5);
  CHECK(rig.make({}, rig.prefix).status == 4);
}

}  // namespace mailroom::test::init_roles_test
