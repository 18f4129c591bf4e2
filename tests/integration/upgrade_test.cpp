// A database that psql created from 0_init alone, with data, as the original system leaves it.

#include <fstream>

#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::upgrade_test {
namespace {

struct OriginalDatabase : DatabaseRig {
  OriginalDatabase() : DatabaseRig(TestDatabase::Schema::none) {
    connection->run(read_file(source_directory + "/migrations/0_init.up.sql"));
    // Today's triggers refuse the third account's login.
    connection->run(
        "INSERT INTO accounts (email, login) VALUES ('a@x.example', 'a'), ('b@x.example', 'b'), "
        "('c@x.example', E'line\\nbreak'), ('d@x.example', 'd')");
    connection->run("UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE account = 1");
    connection->run("UPDATE tokens SET code = '#####' WHERE account = 2");
    connection->run("UPDATE jobs SET last_seq = 1");
  }

  std::string contents() {
    return value<std::string>(
        *connection,
        "SELECT string_agg(line, E'\\n' ORDER BY line) FROM (SELECT (id, email, status, login, created_at, "
        "status_changed_at, activated_at, suspended_at, unsuspended_at)::text AS line FROM accounts "
        "UNION ALL SELECT (id, action, secret, code, account, expires_at, consumed_at, created_at)::text FROM tokens UNION ALL SELECT j::text FROM jobs j) l");
  }
};

}  // namespace

TEST_CASE("a database without bookkeeping is recognised by its tables as version 0") {
  OriginalDatabase original;
  const auto state = schema::read_schema_state(*original.connection);
  CHECK(state.version == 0);
  CHECK(state.unrecorded);
}

TEST_CASE("an upgrade of the original's database changes no value of any row") {
  OriginalDatabase original;
  const auto before = original.contents();
  migrate(*original.connection);
  CHECK(original.contents() == before);
  CHECK(schema::read_schema_state(*original.connection).version ==
        schema::embedded_migrations().back().version);
}

TEST_CASE("after the upgrade the queue resumes at the original's cursor") {
  OriginalDatabase original;
  migrate(*original.connection);
  original.connection->run("UPDATE accounts SET status = 'suspended' WHERE login LIKE 'line%'");
  const auto session = attach(original.database);
  const auto reply = session->claim({.limit = 10, .partial = true});
  REQUIRE(reply.lease);
  CHECK(fetch_ids(*session, *reply.lease) == Ids{2, 4});
}

}  // namespace mailroom::test::upgrade_test
