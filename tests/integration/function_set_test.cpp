// The set of functions: made anew, replaced by one with other signatures, of another mailroom, exported.

#include "schema/function_set.hpp"

#include <algorithm>
#include <set>

#include "schema/bookkeeping.hpp"
#include "schema/migration_files.hpp"
#include "schema/migrator.hpp"
#include "schema/statements.hpp"
#include "schema/verification.hpp"
#include "support/catch.hpp"
#include "support/several_queues.hpp"
#include "support/test_database.hpp"
#include "support/test_queue.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::function_set_test {
namespace {

/// The set of another mailroom: the embedded one with `change` made to each text of its files.
template <typename Change>
schema::FunctionSet changed_set(const Change& change) {
  auto files = schema::embedded_function_files();
  for (auto& file : files.files)
    change(file.text);
  return schema::make_function_set(files, schema::embedded_migrations());
}

void replace_in(std::string& text, const std::string& part, const std::string& by) {
  if (const auto at = text.find(part); at != std::string::npos) text.replace(at, part.size(), by);
}

/// One that has another body of mailroom_queue_actions().
schema::FunctionSet other_set() {
  return changed_set([](std::string& text) {
    replace_in(text, "RETURN (SELECT q.actions FROM mailroom_queues q WHERE q.name = p_queue);",
               "RETURN (SELECT q.actions FROM mailroom_queues q WHERE q.name = p_queue LIMIT 1);");
  });
}

/// One in which mailroom_masked_ids() has another parameter, and mailroom_idle_cursor() another result; it
/// has mailroom_report(), and not mailroom_operation_ids().
schema::FunctionSet set_with_other_signatures() {
  return changed_set([](std::string& text) {
    replace_in(
        text, "FUNCTION mailroom_masked_ids(p_ids int8multirange, p_mask bit varying)",
        "FUNCTION mailroom_masked_ids(p_ids int8multirange, p_mask bit varying, p_more int DEFAULT 0)");
    replace_in(text, "RETURNS TABLE (cursor bigint, newest", "RETURNS TABLE (reached bigint, newest");
    replace_in(text, "FUNCTION mailroom_operation_ids", "FUNCTION mailroom_report");
  });
}

void make(db::Connection& connection, const schema::FunctionSet& set) {
  connection.transact(
      [&](pqxx::work& transaction) { db::Connection::execute(transaction, set.migration.up); });
}

/// A database that has had no other functions than those of `set`.
struct DatabaseOf : DatabaseRig {
  explicit DatabaseOf(const schema::FunctionSet& set) : DatabaseRig(TestDatabase::Schema::none) {
    for (const auto& migration : schema::embedded_migrations())
      connection->run(migration.up);
    connection->transact([](pqxx::work& transaction) {
      schema::record_claim(transaction, schema::embedded_migrations().back().version, "adopt", test_author());
    });
    make(*connection, set);
  }
};

schema::FunctionState state_of(db::Connection& connection) {
  return schema::read_schema_state(connection).functions;
}

std::string oid_of(db::Connection& connection, const std::string& name) {
  return value<std::string>(connection, "SELECT string_agg(oid::text, ' ') FROM pg_proc WHERE proname = '" +
                                            name + "' AND pronamespace = 'public'::regnamespace");
}

std::string grants_of(db::Connection& connection, const std::string& name) {
  return value<std::string>(
      connection,
      "SELECT coalesce(string_agg(coalesce(r.rolname::text, 'everyone') || CASE WHEN is_grantable "
      "THEN ' with option' ELSE '' END, ', ' ORDER BY r.rolname), '') FROM pg_proc p, "
      "aclexplode(p.proacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE a.grantee <> "
      "p.proowner AND p.proname = '" +
          name + "'");
}

}  // namespace

TEST_CASE("a set of the same signatures replaces functions, which keep their grants") {
  TestDatabase database;
  const auto connection = database.connect();
  const TestRole reader(database, "reader");
  connection->run("REVOKE EXECUTE ON FUNCTION mailroom_queue_actions(text) FROM PUBLIC");
  connection->run("GRANT EXECUTE ON FUNCTION mailroom_queue_actions(text) TO " + reader.name());
  const auto oid = oid_of(*connection, "mailroom_queue_actions");
  const auto grants = grants_of(*connection, "mailroom_queue_actions");
  make(*connection, other_set());
  CHECK(oid_of(*connection, "mailroom_queue_actions") == oid);
  CHECK(grants_of(*connection, "mailroom_queue_actions") == grants);
  CHECK(schema::verify_schema(*connection).is_sound());
}

TEST_CASE("a database with the functions of an older mailroom is pending, and a command says so") {
  DatabaseOf older(other_set());
  CHECK(state_of(*older.connection) == schema::FunctionState::older);
  const auto verification = schema::verify_schema(*older.connection);
  CHECK_FALSE(verification.is_sound());
  CHECK(verification.lacks_functions());
  CHECK(verification.drift.differences.empty());
  CHECK_THROWS_AS(schema::require_current_schema(*older.connection), Error);
  migrate(*older.connection);
  CHECK(state_of(*older.connection) == schema::FunctionState::current);
  CHECK(schema::verify_schema(*older.connection).is_sound());
}

TEST_CASE("a changed signature drops the old function, and the new one gets its grants") {
  TestDatabase database;
  const auto connection = database.connect();
  const TestRole reader(database, "reader");
  connection->run("REVOKE EXECUTE ON FUNCTION mailroom_masked_ids FROM PUBLIC");
  connection->run("GRANT EXECUTE ON FUNCTION mailroom_masked_ids TO " + reader.name() + " WITH GRANT OPTION");
  connection->run("CREATE FUNCTION mailroom_masked_ids(text) RETURNS int LANGUAGE sql AS 'SELECT 1'");
  const auto kept = oid_of(*connection, "mailroom_claim");
  make(*connection, set_with_other_signatures());
  // Its own and that of someone else.
  CHECK(
      value<std::string>(*connection,
                         "SELECT string_agg(pg_get_function_identity_arguments(oid), '; ' ORDER BY pronargs) "
                         "FROM pg_proc WHERE proname = 'mailroom_masked_ids'") ==
      "text; p_ids int8multirange, p_mask bit varying, p_more integer");
  CHECK(grants_of(*connection, "mailroom_masked_ids").find(reader.name() + " with option") == 0);
  CHECK(oid_of(*connection, "mailroom_claim") == kept);
  CHECK(value<bool>(*connection, "SELECT to_regprocedure('mailroom_operation_ids(text, jsonb)') IS NULL"));
  CHECK(value<bool>(*connection, "SELECT to_regprocedure('mailroom_report(text, jsonb)') IS NOT NULL"));
  connection->run("DROP FUNCTION mailroom_masked_ids(text)");
  make(*connection, schema::embedded_functions());
  CHECK(value<bool>(*connection, "SELECT to_regprocedure('mailroom_report(text, jsonb)') IS NULL"));
  CHECK(schema::verify_schema(*connection).is_sound());
}

TEST_CASE("a function that an application's view needs is not dropped") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("CREATE VIEW mine AS SELECT * FROM mailroom_idle_cursor('mailroom')");
  CHECK_THROWS_AS(make(*connection, set_with_other_signatures()), db::DatabaseError);
  CHECK(state_of(*connection) == schema::FunctionState::current);
}

TEST_CASE("a mailroom whose functions the database has had before leaves newer ones in place") {
  const auto other = other_set();
  DatabaseOf database(other);
  const auto& connection = database.connection;
  migrate(*connection);
  CHECK(state_of(*connection) == schema::FunctionState::current);
  // The database goes on to the next set, and this mailroom is now the older one.
  const auto next = set_with_other_signatures();
  make(*connection, next);
  CHECK(value<std::string>(*connection, "SELECT checksum FROM mailroom_function_set()") ==
        next.migration.checksum);
  CHECK(state_of(*connection) == schema::FunctionState::newer);
  CHECK_NOTHROW(schema::require_current_schema(*connection));
  CHECK(schema::verify_schema(*connection).is_sound());
  migrate(*connection);
  CHECK(state_of(*connection) == schema::FunctionState::newer);
  // A set that comes back takes its former place: those after it are newer no more.
  make(*connection, other);
  CHECK(state_of(*connection) == schema::FunctionState::older);
  CHECK(value<int>(*connection, "SELECT cardinality(earlier) FROM mailroom_function_set()") == 0);
}

TEST_CASE("a schema without the functions is pending, and a command says so") {
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  for (const auto& migration : schema::embedded_migrations())
    connection->run(migration.up);
  connection->transact([](pqxx::work& transaction) {
    schema::record_claim(transaction, schema::embedded_migrations().back().version, "adopt", test_author());
  });
  CHECK(state_of(*connection) == schema::FunctionState::absent);
  CHECK(schema::verify_schema(*connection).lacks_functions());
  CHECK_THROWS_AS(schema::require_current_schema(*connection), Error);
  migrate(*connection);
  CHECK_NOTHROW(schema::require_current_schema(*connection));
}

TEST_CASE("a claim goes on while the functions are made anew") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 4);
  const auto session = attach(database);
  const auto lease = session->claim({.limit = 2}).lease;
  REQUIRE(lease);
  const auto writer = begin_insert(database, 1, "open", "writer");
  make(*connection, set_with_other_signatures());
  CHECK(fetch_ids(*session, *lease) == Ids{1, 2});
  CHECK(session->claim({.limit = 2, .receipt = claim::Receipt{*lease, {.emitted = 2}}}).lease);
  writer->run("COMMIT");
}

TEST_CASE("no function has two names in the set, and the newest version may carry it for golang-migrate") {
  const auto& set = schema::embedded_functions();
  std::set<std::string> names;
  for (const auto& [name, file] : set.made_in)
    CHECK(names.insert(name).second);
  const auto files = schema::exported_files(schema::embedded_migrations(), set.migration);
  CHECK(files.size() == 2 * schema::embedded_migrations().size() + 1);
  CHECK_FALSE(schema::is_concurrent(schema::split_statements(schema::embedded_migrations().back().up)));
  TestDatabase database(TestDatabase::Schema::none);
  const auto connection = database.connect();
  // golang-migrate sends each file as one query.
  for (const auto& file : files) {
    if (file.name.find(".up.sql") != std::string::npos) connection->run(file.text);
  }
  CHECK(state_of(*connection) == schema::FunctionState::current);
  connection->run(files.back().text);
  CHECK(schema::verify_schema(*connection).is_sound());
  connection->run(files[files.size() - 2].text);
  CHECK(state_of(*connection) == schema::FunctionState::absent);
  // It leaves what the versions before build.
  const auto previous = schema::embedded_migrations().back().version - 1;
  connection->transact(
      [&](pqxx::work& transaction) { schema::record_claim(transaction, previous, "adopt", test_author()); });
  const auto verification = schema::verify_schema(*connection);
  CHECK(verification.version == previous);
  CHECK(verification.drift.differences.empty());
}

TEST_CASE("an error in a function names its file and the line in it") {
  const auto& set = schema::embedded_functions();
  const auto at = set.migration.up.find("CREATE OR REPLACE FUNCTION mailroom_window");
  const auto line = 1 + std::count(set.migration.up.begin(),
                                   set.migration.up.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const auto place = set.place_of(static_cast<int>(line));
  REQUIRE(place);
  CHECK(place->file == "functions/claim.sql");
  std::string text;
  for (const auto& file : schema::embedded_function_files().files)
    if (file.name == "claim.sql") text = file.text;
  std::size_t begin = 0;
  for (int i = 1; i < place->line; ++i)
    begin = text.find('\n', begin) + 1;
  CHECK(text.substr(begin).starts_with("CREATE OR REPLACE FUNCTION mailroom_window"));
  CHECK_FALSE(set.place_of(1));
}

}  // namespace mailroom::test::function_set_test
