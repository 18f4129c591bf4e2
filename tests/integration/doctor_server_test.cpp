// Settings of the whole server affect its other users, so this test runs alone on the server.

#include "support/doctor_rig.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::doctor_server_test {

TEST_CASE("a server that loses commits or does not vacuum is found and fixed") {
  TestDatabase database;
  const auto connection = database.connect();
  const DoctorRig rig(database);
  const auto eventually_set = [&](const std::string& setting, const std::string& wanted) {
    return eventually([&] {
      return value<std::string>(*database.connect(), "SELECT current_setting('" + setting + "')") == wanted;
    });
  };
  for (const std::string setting : {"fsync", "autovacuum"}) {
    INFO(setting);
    connection->run("ALTER SYSTEM SET " + setting + " = off");
    connection->run("SELECT pg_reload_conf()");
    REQUIRE(eventually_set(setting, "off"));
    auto findings = rig.examine("settings");
    std::erase_if(findings, [&](const Finding& finding) { return !finding.reason.starts_with(setting); });
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].verdict == CheckVerdict::warning);
    CHECK(findings[0].fix ==
          std::vector<std::string>{"ALTER SYSTEM SET " + setting + " = on;", "SELECT pg_reload_conf();"});
    REQUIRE(run_fixes(*connection, findings));
    REQUIRE(eventually_set(setting, "on"));
  }
  CHECK(all_fine(rig.examine("settings")));
  connection->run("ALTER SYSTEM RESET ALL");
  connection->run("SELECT pg_reload_conf()");
}

}  // namespace mailroom::test::doctor_server_test
