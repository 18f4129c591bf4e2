// A database as hosts give it: its owner is no superuser, and an event trigger forces row security on every
// new table.

#include <fmt/format.h>

#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/test_collector.hpp"
#include "support/test_database.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::hosting_test {
namespace {

struct HostedRig {
  TestDatabase database{TestDatabase::Schema::none};
  TestRole owner{database, "dbo"};
  std::unique_ptr<db::Connection> superuser = database.connect();

  HostedRig() { superuser->run(fmt::format("ALTER DATABASE {} OWNER TO {}", database.name(), owner.name())); }

  void secure_new_tables(const std::string& how) {
    superuser->run(fmt::format(
        "CREATE FUNCTION secure() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ DECLARE r record; BEGIN "
        "FOR r IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE command_tag = 'CREATE TABLE' LOOP "
        "EXECUTE format('ALTER TABLE %s {}', r.object_identity); END LOOP; END $$; "
        "CREATE EVENT TRIGGER secure ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION secure()",
        how));
  }
  FinishedRun mailroom(std::vector<std::string> words) const {
    words.insert(words.begin(), mailroom_binary);
    return run_to_end(words, {{"MAILROOM_DATABASE_URL", owner.conninfo()},
                              {"MAILROOM_DATABASE_SCHEMA", "mailroom"},
                              {"MAILROOM_SECRET_KEY", test_key}});
  }
  /// An application that may call the function asks for a mail, and the owner hands its line over.
  void check_mails() const {
    const TestRole shop(database, "shop");
    superuser->run(fmt::format(
        "GRANT USAGE ON SCHEMA mailroom TO {0}; GRANT EXECUTE ON FUNCTION mailroom.mailroom_send TO {0}",
        shop.name()));
    db::Connection application(shop.conninfo(), "test");
    application.run("SELECT mailroom.mailroom_send(ARRAY['ada@x.example'], subject => 's', text => 't')");
    const auto run = mailroom({"collect", "--once", "--format", "jsonl"});
    INFO(run.errors);
    CHECK(run.status == 0);
    CHECK(run.output.find("ada@x.example") != std::string::npos);
  }
};

}  // namespace

TEST_CASE("where it is forced on the owner too, the first migrate names the statement that helps") {
  HostedRig rig;
  rig.secure_new_tables("ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY");
  const auto refused = rig.mailroom({"migrate"});
  CHECK(refused.status == 5);
  const auto fix = fmt::format("ALTER ROLE {} BYPASSRLS;", rig.owner.name());
  INFO(refused.errors);
  REQUIRE(refused.errors.find(fix) != std::string::npos);
  rig.superuser->run(fix);
  REQUIRE(rig.mailroom({"migrate"}).status == 0);
  rig.check_mails();
}

TEST_CASE("a role that may not create tables is not told of row security") {
  HostedRig rig;
  const TestRole other(rig.database, "other");
  rig.secure_new_tables("ENABLE ROW LEVEL SECURITY");
  rig.superuser->run("CREATE SCHEMA mailroom; GRANT USAGE ON SCHEMA mailroom TO " + other.name());
  const auto refused = run_to_end({mailroom_binary, "migrate"}, {{"MAILROOM_DATABASE_URL", other.conninfo()},
                                                                 {"MAILROOM_DATABASE_SCHEMA", "mailroom"}});
  CHECK(refused.status == 5);
  INFO(refused.errors);
  CHECK(refused.errors.find("lacks the privilege") != std::string::npos);
}

}  // namespace mailroom::test::hosting_test
