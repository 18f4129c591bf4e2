// Which messages a pruning removes: those that can make no mail any more, and no other.

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/prune_rig.hpp"

namespace mailroom::test::prune_messages_test {
namespace {

std::int64_t send(db::Connection& connection, const std::string& more = {}) {
  return value<std::int64_t>(
      connection, "SELECT mailroom_send(ARRAY['a@x.example'], subject => 's', text => 't'" + more + ")");
}

Ids messages(db::Connection& connection) {
  return ids(connection, "SELECT id FROM mailroom_messages ORDER BY id");
}

/// Moves the times of all messages, of the schedule and of the tokens back.
void age(db::Connection& connection, int days) {
  connection.run("ALTER TABLE mailroom_messages DISABLE TRIGGER before_message_rescheduled");
  for (const auto* table : {"mailroom_messages", "mailroom_schedule", "tokens", "mailroom_deliveries"}) {
    for (
        const auto& column : connection.run(
            "SELECT quote_ident(attname), atttypid = 'bigint'::regtype FROM pg_attribute WHERE attrelid = $1::regclass "
            "AND attname IN ('created_at', 'send_after', 'expires_at', 'cancelled_at', 'replaced_at', 'consumed_at', "
            "'last_at')",
            table)) {
      connection.run(fmt::format(
          "UPDATE {0} SET {1} = {1} - {2}", table, column[0].c_str(),
          column[1].as<bool>() ? fmt::format("86400 * {}", days) : fmt::format("interval '{} days'", days)));
    }
  }
  connection.run("ALTER TABLE mailroom_messages ENABLE TRIGGER before_message_rescheduled");
}

constexpr const char* tomorrow = ", send_after => now() + interval '1 day'";

}  // namespace

TEST_CASE("a message that was cancelled or replaced before its time goes when that is long ago") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto waits = send(*connection, ", send_after => now() + interval '100 days'");
  const auto cancelled = send(*connection, tomorrow);
  const auto key = std::string(tomorrow) + ", idempotency_key => 'k', options => '{\"replace\": true}'";
  const auto replaced = send(*connection, key);
  const auto replacement = send(*connection, key + ", reference => 'r'");
  REQUIRE(replaced != replacement);
  connection->run("SELECT mailroom_cancel($1)", cancelled);
  age(*connection, 29);
  CHECK(prune(database).messages == 0);
  age(*connection, 2);
  const auto lately = send(*connection, tomorrow);
  connection->run("SELECT mailroom_cancel($1)", lately);

  CHECK(count(database).messages == 2);
  CHECK(messages(*connection).size() == 5);
  CHECK(prune(database).messages == 2);
  CHECK(messages(*connection) == Ids{waits, replacement, lately});
  CHECK(value<std::string>(*connection, "SELECT details->>'messages' FROM mailroom_operations") == "2");
  // The schedule still makes the mails of those that wait, however late.
  CHECK(value<int>(*connection, "SELECT released FROM mailroom_release(10)") == 1);
  CHECK(value<int>(*connection, "SELECT count(*) FROM mailroom_schedule") == 1);
  CHECK(prune(database).messages == 0);
}

TEST_CASE("a message goes with its last token, which a dry run foresees") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto both = value<std::int64_t>(
      *connection, "SELECT mailroom_send(ARRAY['a@x.example', 'b@x.example'], subject => 's', text => 't')");
  const auto one = send(*connection, ", attachments => '[{\"name\": \"a\", \"content\": \"YQ==\"}]'");
  const auto endless = send(*connection, ", expires_at => 'infinity'");
  drain(*attach(database));
  age(*connection, 40);
  connection->run("UPDATE tokens SET expires_at = extract(epoch FROM now()) + 60 WHERE id = 1");

  auto planned = count(database);
  CHECK(planned.tokens == 2);
  CHECK(planned.messages == 1);
  auto done = prune(database);
  CHECK(done.tokens == 2);
  CHECK(done.messages == 1);
  CHECK(messages(*connection) == Ids{both, endless});
  CHECK(value<int>(*connection,
                   fmt::format("SELECT count(*) FROM mailroom_attachments WHERE message = {}", one)) == 0);
  connection->run("UPDATE tokens SET expires_at = 0 WHERE message = $1", both);
  CHECK(prune(database).messages == 1);
  CHECK(messages(*connection) == Ids{endless});
}

TEST_CASE("a message above the cursor of a queue, or cancelled lately, stays") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto first = send(*connection);
  drain(*attach(database));
  const auto second = send(*connection);
  age(*connection, 40);
  CHECK(count(database).messages == 1);
  // Its token was consumed before, and its message is cancelled after the mail has left.
  connection->run("UPDATE mailroom_messages SET cancelled_at = now() WHERE id = $1", first);
  CHECK(prune(database).messages == 0);
  CHECK(messages(*connection) == Ids{first, second});
}

TEST_CASE("a message without a token goes whatever became of its account") {
  TestDatabase database;
  const auto connection = database.connect();
  insert_accounts(*connection, 1);
  connection->run("SELECT mailroom_send(NULL, account => 1, subject => 's', text => 't')");
  connection->run(
      "SELECT mailroom_send(NULL, account => 1, subject => 's', text => 't', send_after => now() + interval '50 days')");
  age(*connection, 40);
  connection->run("TRUNCATE accounts, tokens");
  CHECK(prune(database).messages == 1);
  // The schedule deletes the other one when its time has come.
  connection->run("UPDATE mailroom_messages SET send_after = now()");
  connection->run("SELECT mailroom_release(10)");
  CHECK(messages(*connection).empty());
}

TEST_CASE("a message that another session has locked is left for the next pruning") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto message = send(*connection, tomorrow);
  connection->run("SELECT mailroom_cancel($1)", message);
  age(*connection, 40);
  const auto other = database.connect();
  other->run("BEGIN");
  other->run("SELECT FROM mailroom_messages WHERE id = $1 FOR UPDATE", message);
  const auto done = prune(database);
  CHECK(done.messages == 0);
  CHECK(done.skipped == 1);
  other->run("ROLLBACK");
  CHECK(prune(database).messages == 1);
}

TEST_CASE("a row of the application that refers to a message keeps that one, and no other") {
  const std::string key =
      GENERATE(as<std::string>{}, "", " DEFERRABLE INITIALLY DEFERRED", " ON DELETE RESTRICT");
  INFO(key);
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("CREATE TABLE orders (id integer, mail bigint REFERENCES mailroom_messages" + key + ")");
  const auto kept = send(*connection, tomorrow);
  for (int i = 0; i < 20; ++i)
    send(*connection, tomorrow);
  connection->run("INSERT INTO orders VALUES (1, $1)", kept);
  connection->run("SELECT mailroom_cancel(id) FROM mailroom_messages");
  age(*connection, 40);
  for (const auto removed : {20, 0}) {
    const auto summary = prune(database);
    CHECK(summary.messages == removed);
    CHECK(summary.referred == 1);
    CHECK(summary.skipped == 0);
    CHECK(summary.referred_by == "orders_mail_fkey of table orders");
    CHECK(messages(*connection) == Ids{kept});
  }
  connection->run("DELETE FROM orders");
  CHECK(prune(database).messages == 1);
}

TEST_CASE(
    "an account goes although a row of the application refers to its message, which loses its content") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("CREATE TABLE orders (id integer, mail bigint REFERENCES mailroom_messages)");
  insert_accounts(*connection, 1);
  for (int i = 0; i < 2; ++i) {
    connection->run(
        "INSERT INTO mailroom_messages (account, subject, text, send_after) SELECT id, 's', 't', now() + interval '1 day' "
        "FROM accounts");
  }
  connection->run("INSERT INTO orders SELECT 1, min(id) FROM mailroom_messages");
  connection->run("DELETE FROM accounts");
  CHECK(value<std::string>(
            *connection,
            "SELECT string_agg(concat_ws('-', id, subject, text, cancelled_at IS NOT NULL), ' ') FROM "
            "mailroom_messages") == "1-t");
  CHECK(value<int>(*connection,
                   "SELECT count(*) FROM mailroom_schedule s JOIN mailroom_messages m ON m.id = s.message") ==
        0);
}

}  // namespace mailroom::test::prune_messages_test
