#include "schema/migration_plan.hpp"
#include "schema/migrator.hpp"
#include "support/catch.hpp"

namespace mailroom::test::losses_test {

TEST_CASE("what a migration deletes is read from its declarations") {
  std::string names;
  for (const auto& loss :
       schema::declared_losses("-- Drops a.\n--\n-- deletes: table a\n-- deletes: column b.c\r\n"
                               "-- deletes: column d\n-- deletes: table e.f\n-- deletes: g\n\n"
                               "-- deletes: rows k WHERE l > 1\n-- deletes: rows m\n"
                               "DROP TABLE h;\n-- deletes no table i\n-- deletes: table j"))
    names += loss.name() + " ";
  CHECK(names == "a b.c k WHERE l > 1 j ");
}

TEST_CASE("the lock's key is golang-migrate's") {
  // From the tests of golang-migrate 4: GenerateAdvisoryLockId("database_name", "schema_name_1",
  // "schema_name_2").
  CHECK(schema::golang_migrate_key("database_name", "schema_name_1", "schema_name_2") == 3743845847);
}

}  // namespace mailroom::test::losses_test
