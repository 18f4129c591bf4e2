#include "schema/losses.hpp"

#include "schema/migration_lock.hpp"
#include "support/catch.hpp"

using namespace mailroom;

namespace {

std::string names_in(std::string_view sql) {
  std::string names;
  for (const auto& loss : deletions_in(sql))
    names += (names.empty() ? "" : " ") + loss.name();
  return names;
}

}  // namespace

TEST_CASE("the objects that a migration deletes are read from its text") {
  CHECK(names_in("DROP TABLE a; DROP TABLE IF EXISTS B, \"c d\" CASCADE;") == "a b c d");
  CHECK(names_in("ALTER TABLE IF EXISTS ONLY t DROP COLUMN IF EXISTS a, ADD b int, DROP c CASCADE") ==
        "t.a t.c");
  CHECK(names_in("TRUNCATE a, b; DELETE FROM ONLY c WHERE x") == "a b c");
}

TEST_CASE("a statement that deletes no row is no loss") {
  CHECK(names_in("ALTER TABLE t DROP CONSTRAINT c, ALTER COLUMN a DROP DEFAULT, ALTER b DROP NOT NULL")
            .empty());
  CHECK(names_in(
            "DROP FUNCTION f(); DROP TYPE x; DROP INDEX i; DROP TRIGGER g ON t; ALTER FUNCTION f() RESET a")
            .empty());
  CHECK(names_in("CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ DROP TABLE a $$; UPDATE t SET a = 1")
            .empty());
}

TEST_CASE("each embedded up migration deletes nothing, and its down no table of a lower version") {
  for (const auto& migration : embedded_migrations()) {
    CHECK(names_in(migration.up).empty());
    if (migration.version > 0) CHECK(names_in(migration.down).find("accounts") == std::string::npos);
  }
  CHECK(names_in(embedded_migrations().front().down) == "jobs tokens accounts");
}

TEST_CASE("the lock's key is golang-migrate's") {
  // From the tests of golang-migrate 4: GenerateAdvisoryLockId("database_name", "schema_name_1",
  // "schema_name_2").
  CHECK(golang_migrate_key("database_name", "schema_name_1", "schema_name_2") == 3743845847);
}
