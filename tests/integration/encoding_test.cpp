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
