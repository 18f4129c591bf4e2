// A database whose encoding has fewer characters than UTF-8, and objects of others with names like those of
// mailroom.

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/operator_rig.hpp"

namespace mailroom::test::encoding_test {

TEST_CASE("the schema is created, checked and used in a database of any encoding") {
  const std::string encoding = GENERATE("LATIN1", "SQL_ASCII", "EUC_JP");
  CAPTURE(encoding);
  TestDatabase database(TestDatabase::Schema::none,
                        fmt::format("ENCODING '{}' LOCALE 'C' TEMPLATE template0", encoding));
  const auto connection = database.connect();
  const OperatorRig rig(database);
  const auto migrated = rig.mailroom({"migrate"});
  INFO(migrated.errors);
  REQUIRE(migrated.status == 0);
  CHECK(rig.mailroom({"migrate", "verify"}).status == 0);
  insert_accounts(*connection, 3);
  CHECK(rig.mailroom({"collect", "--once"}).status == 0);
  CHECK(rig.mailroom({"status"}).status == 0);
  CHECK(rig.mailroom({"doctor"}).status == 0);
  CHECK(rig.mailroom({"migrate", "down", "--all", "--yes"}).status == 0);
}

TEST_CASE("a reason that the database's encoding lacks is refused before anything is changed") {
  TestDatabase database(TestDatabase::Schema::none, "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  const auto connection = database.connect();
  const OperatorRig rig(database);
  REQUIRE(rig.mailroom({"migrate"}).status == 0);
  insert_accounts(*connection, 3);
  connection->run("UPDATE tokens SET expires_at = 1, created_at = 0 WHERE id = 1");
  const std::string state =
      "SELECT (SELECT count(*) FROM mailroom_operations) || ' ' || (SELECT count(*) FROM tokens) || ' ' || "
      "(SELECT count(*) FROM mailroom_schema_history)";
  const auto before = value<std::string>(*connection, state);
  for (auto words : std::vector<std::vector<std::string>>{{"suspend", "user1"},
                                                          {"queue", "pause", "mailroom"},
                                                          {"queue", "set", "mailroom", "--priority", "3"},
                                                          {"queue", "create", "second", "--copy"},
                                                          {"queue", "drop", "mailroom"},
                                                          {"rewind-cursor", "--to-end"},
                                                          {"prune", "--older-than", "1d"},
                                                          {"migrate", "down", "1"},
                                                          {"migrate", "force", "8"},
                                                          {"migrate", "baseline", "8"}}) {
    INFO(fmt::format("{}", fmt::join(words, " ")));
    words.insert(words.end(), {"--yes", "--reason", "gr\u00FCn \u2026"});
    const auto refused = rig.mailroom(words);
    CAPTURE(refused.errors);
    CHECK(refused.status == 2);
    CHECK(refused.errors.find(
              "error: --reason: the database, whose encoding is LATIN1, has no character '\u2026'\n"
              "hint: write it without this character\n") != std::string::npos);
    CHECK(value<std::string>(*connection, state) == before);
  }
  CHECK(rig.mailroom({"suspend", "user1", "--reason", "gr\u00FCn"}).status == 0);
}

TEST_CASE("a name that the database's encoding lacks is refused with a hint") {
  TestDatabase database(TestDatabase::Schema::none, "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  const OperatorRig rig(database);
  REQUIRE(rig.mailroom({"migrate"}).status == 0);
  const std::string name = "user\u20261";
  for (const auto& words : std::vector<std::vector<std::string>>{{"suspend", name},
                                                                 {"audit", name},
                                                                 {"tail", "--account", name},
                                                                 {"resend", name},
                                                                 {"queue", "create", name, "--copy", "--yes"},
                                                                 {"status", "--queue", name},
                                                                 {"collect", "--once", "--queue", name},
                                                                 {"collect", "--once", "--channel", name}}) {
    INFO(fmt::format("{}", fmt::join(words, " ")));
    const auto refused = rig.mailroom(words);
    CAPTURE(refused.errors);
    CHECK(refused.status != 0);
    CHECK(refused.errors.find("the database, whose encoding is LATIN1, has no character '\u2026'") !=
          std::string::npos);
    CHECK(refused.errors.find("hint: write it without this character") != std::string::npos);
  }
}

TEST_CASE("an answer that the database's encoding lacks is recorded all the same") {
  TestDatabase database(TestDatabase::Schema::none, "ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  const auto connection = database.connect();
  const OperatorRig rig(database);
  REQUIRE(rig.mailroom({"migrate"}).status == 0);
  insert_accounts(*connection, 1);
  const TemporaryDirectory directory;
  directory.write(
      "refuse",
      "#!/bin/sh\nwhile read -r batch rest; do printf 'fail %s * reject nein \u2026\\n' \"$batch\" >&3; done\n",
      0755);
  rig.mailroom({"collect", "--once", "--exec", directory.path() / "refuse"});
  CHECK(value<std::string>(*connection, "SELECT string_agg(reply, ' ') FROM mailroom_deliveries") ==
        "nein ?");
}

TEST_CASE("no function of another application is changed, whatever its name is") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  const OperatorRig rig(database);
  connection->run(
      "CREATE FUNCTION trg_customers_audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'");
  connection->run("CREATE FUNCTION mailroom_report() RETURNS int LANGUAGE sql AS 'SELECT 1'");
  connection->run("CREATE FUNCTION mailroom_fetch(text) RETURNS int LANGUAGE sql AS 'SELECT 1'");
  connection->run("CREATE FUNCTION mailroom_merge_gaps(text) RETURNS int LANGUAGE sql AS 'SELECT 1'");
  const std::string state =
      "SELECT string_agg(proname || coalesce(proconfig::text, '') || prosecdef || coalesce(proacl::text, ''), ' ' ORDER BY oid) "
      "FROM pg_proc WHERE oid = ANY (ARRAY['trg_customers_audit()', 'mailroom_report()', 'mailroom_fetch(text)', "
      "'mailroom_merge_gaps(text)']::regprocedure[])";
  const auto before = value<std::string>(*connection, state);
  REQUIRE(rig.mailroom({"migrate"}).status == 0);
  CHECK(value<std::string>(*connection, state) == before);
  REQUIRE(rig.mailroom({"migrate", "down", "--all", "--yes"}).status == 0);
  CHECK(value<std::string>(*connection, state) == before);
}

}  // namespace mailroom::test::encoding_test
