// The commands that an operator is told to type, and that no untrusted text gets into them.

#include "status/fix_commands.hpp"

#include "base/wording.hpp"
#include "db/search_path.hpp"
#include "support/catch.hpp"

namespace mailroom::test::fix_commands_test {

TEST_CASE("a process is reached on its host") {
  const status::CollectorProcess process{.host = "web1", .pid = "77"};
  CHECK(status::continue_process(process, "web1") == "kill -CONT 77");
  CHECK(status::continue_process(process, "web2") == "ssh web1 kill -CONT 77");
  CHECK(
      status::find_service(process, "web1") ==
      "systemctl list-unit-files 'mailroom*' lists the services there are; without systemd, start mailroom send, or collect with its reader");
  CHECK(
      status::find_service(process, "web2") ==
      "ssh web1 \"systemctl list-unit-files 'mailroom*'\" lists the services there are; without systemd, start mailroom send, or collect with its reader");
  CHECK(
      status::find_service(std::nullopt, "web2") ==
      "systemctl list-unit-files 'mailroom*' lists the services there are; without systemd, start mailroom send, or collect with its reader");
}

TEST_CASE("a collector's process is read from its name") {
  for (const auto* user : {"@", " alice@", " svc mail@", " alice@corp@"}) {
    const auto named = status::collector_process("mailroom send" + std::string(user) + "web1:77");
    REQUIRE(named);
    CHECK(named->host == "web1");
    CHECK(named->pid == "77");
  }
  const auto process = status::collector_process("mailroom collect@web-1.mail.example:4711");
  REQUIRE(process);
  CHECK(process->host == "web-1.mail.example");
  CHECK(process->pid == "4711");
}

TEST_CASE("no command is built from a made-up name") {
  for (const std::string name :
       {"", "psql", "mailroom collect", "mailroom collect@", "mailroom collect@web1", "mailroom collect@:77",
        "mailroom collect@web1:", "mailroom collect@web1:0", "mailroom collect@web1:-1",
        "mailroom collect@web1:77; reboot", "mailroom collect@web1; reboot:77",
        "mailroom collect@$(reboot):77", "mailroom collect@-oProxyCommand=reboot:77",
        "mailroom collect@-l:77", "mailroom status@web1:77", "mailroom status alice@web1:77",
        "mailroom collector alice@web1:77", "mailroom collect alice@$(reboot):77",
        "mailroom collect alice"}) {
    CAPTURE(name);
    CHECK_FALSE(status::collector_process(name));
  }
}

TEST_CASE("a statement gets its schema wherever it is marked") {
  CHECK(db::in_schema("SELECT @.f(id) FROM @.t", "app") == "SELECT app.f(id) FROM app.t");
  CHECK(db::in_schema("SELECT @.f()", "\"@.\"") == "SELECT \"@.\".f()");
  CHECK(db::in_schema("SELECT 1", "app") == "SELECT 1");
}

TEST_CASE("a name is quoted for a shell") {
  CHECK(shell_word("app") == "app");
  CHECK(shell_word("it's mine") == "'it'\\''s mine'");
}

TEST_CASE("a name is quoted for SQL") {
  CHECK(status::sql_literal("it's") == "'it''s'");
}

}  // namespace mailroom::test::fix_commands_test
