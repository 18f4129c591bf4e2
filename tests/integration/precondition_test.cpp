// The queue's preconditions: if one fails, a collector stops and prints the fix.

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::precondition_test {

TEST_CASE("a sequence behind the cursor stops the claim instead of skipping tokens") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 3);
  const auto session = attach(database);
  const auto before = session->claim({.limit = 3});
  connection->run("TRUNCATE accounts, tokens RESTART IDENTITY");
  try {
    session->claim({.limit = 3, .take_over = false});
    FAIL("the claim went on");
  } catch (const db::DatabaseError& error) {
    CHECK(error.sqlstate() == "MR002");
  }
  // A batch that was leased before can still be acknowledged.
  session->claim({.receipt = claim::Receipt{*before.lease, {.emitted = 3}}});
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL") == 0);
}

TEST_CASE("a collector refuses to start when a precondition fails") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto refusal = [&] {
    try {
      attach(database);
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::schema);
      return std::string(error.what());
    }
    return std::string();
  };
  connection->run("ALTER TABLE tokens DISABLE TRIGGER before_token_insert");
  CHECK(refusal() == "the trigger before_token_insert on tokens is disabled");
  connection->run("ALTER TABLE tokens ENABLE TRIGGER before_token_insert");
  connection->run("ALTER SEQUENCE tokens_id_seq CACHE 20");
  CHECK(refusal() == "the sequence tokens_id_seq does not give out ids one by one, in order");
  connection->run("ALTER SEQUENCE tokens_id_seq CACHE 1");
  connection->run("DROP TRIGGER before_token_insert ON tokens");
  CHECK(refusal() == "the trigger before_token_insert on tokens is missing");
}

TEST_CASE("a claim is refused in a session or transaction that cannot hold a lease, as behind a pooler") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  const auto refusal = [&](const std::string& before, const std::string& collector) {
    try {
      connection->transact([&](pqxx::work& transaction) {
        db::Connection::execute(transaction, before);
        db::Connection::execute(transaction, "SELECT mailroom_claim(" + collector +
                                                 ", 'mailroom', 1, true, true, false, false, NULL, NULL)");
      });
    } catch (const db::DatabaseError& error) {
      return error.sqlstate();
    }
    return std::string("accepted");
  };
  CHECK(refusal("SELECT 1", "pg_backend_pid() + 1") == "MR003");
  CHECK(refusal("SELECT pg_current_xact_id()", "pg_backend_pid()") == "MR003");
  CHECK(refusal("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "pg_backend_pid()") == "MR003");
  CHECK(refusal("SELECT 1", "pg_backend_pid()") == "accepted");
}

}  // namespace mailroom::test::precondition_test
