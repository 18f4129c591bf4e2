// mailroom_actions: how an action is created, changed and retired, and what a comparison of the schema makes
// of it.

#include <fmt/format.h>

#include "schema/function_set.hpp"
#include "schema/migration_plan.hpp"
#include "schema/migrator.hpp"
#include "schema/verification.hpp"
#include "support/catch.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::action_rows_test {
namespace {

/// Down or up to a version, in a session of its own: the lock of a migrator lasts as long.
const long newest = schema::embedded_migrations().back().version;

void go_to(const TestDatabase& database, long version) {
  const auto connection = database.connect();
  schema::Migrator migrator(*connection, test_author());
  const auto state = migrator.begin();
  const auto steps = schema::plan_goto(schema::embedded_migrations(), state, version);
  schema::MigrationObserver observer;
  migrator.run(state, schema::with_functions(steps, state, schema::embedded_functions().migration, false),
               observer);
}

std::size_t differences(db::Connection& connection) {
  return schema::verify_schema(connection).drift.differences.size();
}

}  // namespace

TEST_CASE("the actions that every database has are those of the original system, and message") {
  const DatabaseRig rig;
  CHECK(
      value<std::string>(
          *rig.connection,
          "SELECT string_agg(concat_ws(' ', number, action, path, has_code, account_status, lifetime, template, security), "
          "', ' ORDER BY number) FROM mailroom_actions") ==
      "1 activation /activate f provisioned 00:15:00 activation t, 2 password_recovery /recover t active 00:15:00 recovery t, "
      "3 message f 3 days f");
}

TEST_CASE("an action is created, and its tokens are signed, due and expire as it says") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  insert_accounts(connection, 1);
  connection.run(
      "SELECT mailroom_create_action('magic_link', path => '/magic', has_code => true, lifetime => '10 minutes')");
  connection.run(
      "SELECT mailroom_create_action('digest', account_status => 'active', lifetime => NULL, template => 'weekly')");
  connection.run("SELECT mailroom_send(ARRAY['a@x.example'], action => 'magic_link')");
  connection.run("SELECT mailroom_send(NULL, action => 'digest', account => 1)");
  CHECK(
      value<std::string>(
          connection,
          "SELECT string_agg(concat_ws(' ', action, octet_length(secret), length(code), "
          "least(expires_at - created_at, 100000)), ', ' ORDER BY id) FROM tokens WHERE message IS NOT NULL") ==
      "magic_link 32 5 600, digest 100000");
  const auto session = attach(rig.database);
  CHECK(drain(*session) == Ids{1, 2});
  connection.run("UPDATE accounts SET status = 'active'");
  connection.run("SELECT mailroom_send(NULL, action => 'digest', account => 1)");
  CHECK(drain(*session) == Ids{4});
}

TEST_CASE("the actions of rows that were read stay valid while a later row has a new one") {
  const DatabaseRig rig;
  queue::KnownActions known(*rig.connection);
  const auto* first = known.require("activation");
  rig.connection->run("SELECT mailroom_create_action('digest', template => 'weekly')");
  CHECK(known.require("digest")->name == "digest");
  CHECK(first->name == "activation");
}

TEST_CASE("a change of an action holds from then on, and what signatures depend on never changes") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  connection.run("SELECT mailroom_create_action('magic_link', path => '/magic')");
  connection.run(
      "SELECT mailroom_set_action('magic_link', '{\"lifetime\": \"1 hour\", \"security\": true, \"template\": \"link\"}')");
  CHECK(
      value<std::string>(
          connection,
          "SELECT concat_ws(' ', lifetime, security, template, path) FROM mailroom_actions WHERE number = 4") ==
      "01:00:00 t link /magic");
  CHECK(refusal(connection, "SELECT mailroom_set_action('magic_link', '{\"path\": \"/x\"}')")
            .starts_with("0A000 path of an action"));
  CHECK(refusal(connection, "SELECT mailroom_set_action('magic_link', '{\"lifetim\": 1}')")
            .starts_with("22023 an action has no setting"));
  CHECK(refusal(connection, "SELECT mailroom_set_action('magic_link', '{\"producer\": \"no such role\"}')")
            .starts_with("42704 role"));
  CHECK(refusal(connection, "SELECT mailroom_set_action('activation', '{}')")
            .starts_with("55000 the action \"activation\" is built in"));
  CHECK(refusal(connection, "SELECT mailroom_set_action('message', '{\"account_status\": \"active\"}')")
            .starts_with("55000 the action \"message\" is built in"));
  CHECK(refusal(connection, "SELECT mailroom_retire_action('message')")
            .starts_with("55000 the action \"message\" is built in"));
  CHECK(refusal(connection, "SELECT mailroom_retire_action('nothing')")
            .starts_with("42704 there is no action"));
  for (const auto& [arguments, error] : std::vector<std::pair<std::string, std::string>>{
           {"'magic_link'", "23505 the action \"magic_link\" exists"},
           {"'other', path => '/magic'", "23505 another action has the path"},
           {"'Other'", "23514 \"Other\" is not a name"},
           {"'other', path => 'magic'", "23514 \"magic\" is not a path"},
           {"'other', has_code => true", "23514 "},
           {"'other', lifetime => '1 second'", "23514 "},
           {"'other', producer => 'no such role'", "42704 "}})
    CHECK(
        refusal(connection, fmt::format("SELECT mailroom_create_action({})", arguments)).starts_with(error));
  connection.run(
      "SELECT mailroom_send(ARRAY['a@x.example'], action => 'magic_link', send_after => now() + interval '1 hour')");
  connection.run("SELECT mailroom_retire_action('magic_link')");
  CHECK(refusal(connection, "SELECT mailroom_send(ARRAY['a@x.example'], action => 'magic_link')")
            .starts_with("23514 the action"));
  connection.run("UPDATE mailroom_schedule SET send_after = now() - interval '1 second'");
  CHECK(value<int>(connection, "SELECT released FROM mailroom_release(10)") == 1);
  CHECK(
      value<std::string>(connection, "SELECT string_agg(kind, ', ' ORDER BY id) FROM mailroom_operations") ==
      "create action, set action, retire action");
}

TEST_CASE("labels of created actions are data, also where somebody has emptied the table of actions") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  CHECK(differences(connection) == 0);
  connection.run("SELECT mailroom_create_action('magic_link', path => '/magic')");
  connection.run("SELECT mailroom_create_action('digest')");
  CHECK(differences(connection) == 0);
  connection.run("DELETE FROM mailroom_actions WHERE number > 3");
  CHECK(differences(connection) == 0);
}

TEST_CASE("the actions and messages go with a downgrade, and nothing else does") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  insert_accounts(connection, 2);
  connection.run("SELECT mailroom_create_action('magic_link', path => '/magic')");
  connection.run("SELECT mailroom_send(ARRAY['a@x.example'], action => 'magic_link')");
  connection.run("INSERT INTO tokens (account, action) VALUES (1, 'magic_link')");
  connection.run("SELECT mailroom_set_queue('mailroom', '{\"actions\": [\"magic_link\"]}', 'token_insert')");
  CHECK_THROWS_WITH(go_to(rig.database, 7),
                    Catch::Matchers::ContainsSubstring("takes neither activation nor password_recovery"));
  go_to(rig.database, newest);
  connection.run(
      "SELECT mailroom_set_queue('mailroom', '{\"actions\": [\"magic_link\", \"activation\"]}', 'token_insert')");
  go_to(rig.database, 7);
  CHECK(value<std::string>(connection, "SELECT string_agg(action::text, ', ' ORDER BY id) FROM tokens") ==
        "activation, activation");
  CHECK(value<std::string>(connection, "SELECT actions::text FROM mailroom_queues") == "{activation}");
  CHECK(differences(connection) == 0);
  go_to(rig.database, newest);
  CHECK(differences(connection) == 0);
  CHECK(drain(*attach(rig.database)) == Ids{1, 2});
}

}  // namespace mailroom::test::action_rows_test
