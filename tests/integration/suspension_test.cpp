// Suspensions: one transaction for all accounts, the tokens skipped meanwhile, and a record with the actor.

#include "accounts/suspension.hpp"

#include "replay/rewind.hpp"
#include "support/catch.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::suspension_test {
namespace {

using Changes = std::vector<accounts::StatusChange>;

Changes suspend(db::Connection& connection, const std::vector<std::string>& names) {
  const auto accounts = accounts::find_accounts(connection, names);
  return connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, {.actor = "tester@host", .reason = "test"});
    return accounts::suspend_accounts(transaction, {"mailroom"}, accounts);
  });
}

Changes restore(db::Connection& connection, const std::vector<std::string>& names) {
  const auto accounts = accounts::find_accounts(connection, names);
  return connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, {.actor = "tester@host", .reason = ""});
    return accounts::restore_accounts(transaction, {"mailroom"}, accounts);
  });
}

ExitCode refusal(db::Connection& connection, const std::vector<std::string>& names, std::string& message) {
  try {
    accounts::find_accounts(connection, names);
  } catch (const Error& error) {
    message = error.what();
    return error.code();
  }
  return ExitCode::done;
}

}  // namespace

TEST_CASE("an account is found once by id, email and login, and missing accounts are named") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  connection->run("INSERT INTO accounts (email, login) VALUES ('two@test.example', '2')");
  const auto found = accounts::find_accounts(*connection, {"user3", "1", "user1@test.example", "id:2"});
  REQUIRE(found.size() == 3);
  CHECK(found[0].login == "user3");
  CHECK(found[1].id == 1);
  CHECK(found[2].id == 2);
  CHECK(accounts::find_accounts(*connection, {"login:2"})[0].id == 4);
  CHECK(accounts::find_accounts(*connection, {"email:two@test.example"})[0].id == 4);
  std::string message;
  CHECK(refusal(*connection, {"user1", "nobody", "99", "-1"}, message) == ExitCode::unusable);
  CHECK(message == "no account has the id, email or login 'nobody', '99', '-1'");
  CHECK(refusal(*connection, {"2"}, message) == ExitCode::usage);
  CHECK(message == "'2' names 2 accounts: 2 and 4");
}

TEST_CASE("a suspension returns the tokens that are skipped from now on, and a repetition changes nothing") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 2);
  const auto session = attach(database);
  const auto reply = session->claim({.limit = 1, .partial = true});
  REQUIRE(reply.lease);
  session->claim({.limit = 0, .receipt = claim::Receipt{*reply.lease, {.emitted = 1}}});
  auto changes = suspend(*connection, {"1", "2"});
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].before == "provisioned");
  CHECK(changes[0].after == "suspended");
  CHECK(changes[0].tokens.empty());
  CHECK(changes[1].tokens == Ids{2});
  changes = suspend(*connection, {"1", "2"});
  CHECK(changes[1].before == "suspended");
  CHECK(changes[1].after == "suspended");
  CHECK(changes[1].tokens.empty());
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_operations") == 2);
}

TEST_CASE("the end of a suspension returns the tokens skipped meanwhile, and a replay emits them") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  connection->run("UPDATE tokens SET consumed_at = 1 WHERE id = 3");
  suspend(*connection, {"1", "3"});
  const auto session = attach(database);
  auto reply = session->claim({.limit = 10, .partial = true});
  REQUIRE(reply.lease);
  const auto [ids, counts] = fetch_due(*session, *reply.lease);
  CHECK(ids == Ids{2});
  session->claim({.limit = 0, .receipt = claim::Receipt{*reply.lease, counts}});
  const auto changes = restore(*connection, {"1", "2", "3"});
  CHECK(changes[0].after == "provisioned");
  CHECK(changes[0].tokens == Ids{1});
  CHECK(changes[1].before == "provisioned");
  CHECK(changes[1].tokens.empty());
  CHECK(changes[2].after == "active");
  connection->transact([](pqxx::work& transaction) {
    CHECK(replay::replay_tokens(transaction, "mailroom", {1}, "{}", "token_insert") == 1);
  });
  reply = session->claim({.limit = 10, .partial = true});
  REQUIRE(reply.lease);
  CHECK(fetch_ids(*session, *reply.lease) == Ids{1});
}

TEST_CASE("an application's suspension is recorded too, with its own actor and reason if it sets them") {
  TestDatabase database;
  const auto connection = database.connect("billing");
  insert_accounts(*connection, 2);
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 1");
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 1");
  connection->transact([](pqxx::work& transaction) {
    queue::set_author(transaction, {.actor = "support agent 7", .reason = "chargeback"});
    db::Connection::execute(transaction, "UPDATE accounts SET status = 'suspended' WHERE id = 2");
  });
  connection->run("UPDATE accounts SET status = 'active' WHERE id = 2");
  const auto rows = connection->run(
      "SELECT kind, account, actor, coalesce(reason, '-'), details->>'after' FROM mailroom_operations ORDER "
      "BY "
      "id");
  REQUIRE(rows.size() == 3);
  CHECK(std::string(rows[0][2].c_str()).rfind("billing ", 0) == 0);
  CHECK(std::string(rows[0][3].c_str()) == "-");
  CHECK(std::string(rows[1][2].c_str()) == "support agent 7");
  CHECK(std::string(rows[1][3].c_str()) == "chargeback");
  CHECK(std::string(rows[2][0].c_str()) == "restore");
  CHECK(std::string(rows[2][4].c_str()) == "provisioned");
}

TEST_CASE("an application without privileges on the record can suspend accounts") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  const auto role = "app_" + database.name();
  connection->run("CREATE ROLE " + role);
  connection->run("GRANT SELECT, UPDATE ON accounts TO " + role);
  connection->run("SET ROLE " + role);
  connection->run("UPDATE accounts SET status = 'suspended'");
  connection->run("RESET ROLE");
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_operations WHERE kind = 'suspend'") == 1);
  connection->run("DROP OWNED BY " + role);
  connection->run("DROP ROLE " + role);
}

}  // namespace mailroom::test::suspension_test
