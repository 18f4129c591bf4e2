// Tables and functions of mailroom's names that an application's statements find first: status and doctor
// fail.

#include <fmt/format.h>

#include "health/queue_health.hpp"
#include "schema/configured_schema.hpp"
#include "support/doctor_rig.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::shadow_status_test {
namespace {

struct ShadowRig {
  TestDatabase database{TestDatabase::Schema::none};
  db::Connection owner{{database.conninfo(), "mailroom"}, "test"};
  DoctorRig doctor{database};

  ShadowRig() {
    doctor.environment["MAILROOM_DATABASE_SCHEMA"] = "mailroom";
    schema::create_configured_schema(owner);
    migrate(owner);
  }

  /// What status finds: `public.mailroom_messages by "$user", public`.
  std::vector<std::string> found() {
    std::vector<std::string> names;
    owner.transact([&](pqxx::work& transaction) {
      for (const auto& shadow : status::find_shadows(transaction))
        names.push_back(fmt::format("{} {} by {}{}", shadow.kind, shadow.name, shadow.path,
                                    shadow.whose.empty() ? "" : " of " + shadow.whose));
    });
    return names;
  }
  /// After `sql`, and nothing after `undo`.
  void check(const std::string& sql, const std::string& expected, const std::string& undo) {
    INFO(sql);
    owner.run(sql);
    CHECK(found() == std::vector<std::string>{expected});
    const auto findings = health::judge_queue(status::read_queue_status(owner, "mailroom"), {});
    CHECK(std::ranges::any_of(findings, [](const health::QueueFinding& finding) {
      return finding.code == "shadowed" && finding.severity == health::Severity::failure;
    }));
    const auto said = doctor.examine("search paths");
    REQUIRE(said.size() == 1);
    CHECK(said[0].verdict == doctor::CheckVerdict::failure);
    CHECK_FALSE(said[0].hint.empty());
    owner.run(undo);
    CHECK(found().empty());
    CHECK(all_fine(doctor.examine("search paths")));
  }
};

}  // namespace

TEST_CASE(
    "a relation or a function of mailroom's names that an application's search path finds is a failure") {
  ShadowRig rig;
  CHECK(rig.found().empty());
  const std::string usual = " by \"$user\", public";
  rig.check("CREATE TABLE public.mailroom_messages (id bigint)", "table public.mailroom_messages" + usual,
            "DROP TABLE public.mailroom_messages");
  rig.check("CREATE VIEW public.mailroom_messages AS SELECT 1 AS id", "view public.mailroom_messages" + usual,
            "DROP VIEW public.mailroom_messages");
  rig.check("CREATE MATERIALIZED VIEW public.mailroom_attachments AS SELECT 1 AS id",
            "view public.mailroom_attachments" + usual, "DROP MATERIALIZED VIEW public.mailroom_attachments");
  rig.check("CREATE TABLE public.mailroom_messages (id bigint) PARTITION BY RANGE (id)",
            "table public.mailroom_messages" + usual, "DROP TABLE public.mailroom_messages");
  rig.check("CREATE FUNCTION public.mailroom_send(text) RETURNS bigint LANGUAGE sql RETURN 1",
            "function public.mailroom_send" + usual, "DROP FUNCTION public.mailroom_send(text)");
}

TEST_CASE(
    "the search paths of the database and of roles count, as far as they come before mailroom's schema") {
  ShadowRig rig;
  const TestRole app(rig.database, "app");
  const auto& name = rig.database.name();
  rig.owner.run("CREATE SCHEMA stall; CREATE TABLE stall.mailroom_messages (id bigint)");
  CHECK(rig.found().empty());
  rig.check(fmt::format("ALTER DATABASE {} SET search_path = stall, mailroom", name),
            "table stall.mailroom_messages by stall, mailroom of this database",
            fmt::format("ALTER DATABASE {} SET search_path = mailroom, stall", name));
  rig.owner.run(fmt::format("ALTER DATABASE {} RESET search_path", name));
  rig.check(fmt::format("ALTER ROLE {} SET search_path = stall", app.name()),
            fmt::format("table stall.mailroom_messages by stall of the role {}", app.name()),
            fmt::format("ALTER ROLE {} IN DATABASE {} SET search_path = public", app.name(), name));
  rig.owner.run(fmt::format("ALTER ROLE {} RESET ALL; ALTER ROLE {} IN DATABASE {} RESET ALL", app.name(),
                            app.name(), name));
  rig.check(fmt::format("ALTER SCHEMA stall RENAME TO {}", app.name()),
            fmt::format("table {}.mailroom_messages by \"$user\", public", app.name()),
            fmt::format("DROP SCHEMA {} CASCADE", app.name()));
}

TEST_CASE("names that an application may have, temporary tables and another mailroom are no shadows") {
  ShadowRig rig;
  rig.owner.run(
      "CREATE TABLE public.accounts (id int); CREATE TABLE public.jobs (id int); CREATE TEMP TABLE mailroom_messages (id int); "
      "CREATE FUNCTION public.send(text) RETURNS int LANGUAGE sql RETURN 1");
  CHECK(rig.found().empty());
  rig.owner.run("CREATE SCHEMA tenant");
  db::Connection tenant({rig.database.conninfo(), "tenant"}, "test");
  migrate(tenant);
  const TestRole app(rig.database, "app");
  rig.owner.run(fmt::format("ALTER ROLE {} SET search_path = tenant", app.name()));
  CHECK(rig.found().empty());
  rig.owner.run(fmt::format("ALTER ROLE {} SET search_path = tenant, mailroom", app.name()));
  CHECK_FALSE(rig.found().empty());
  rig.owner.run(fmt::format("ALTER ROLE {} RESET search_path", app.name()));
}

}  // namespace mailroom::test::shadow_status_test
