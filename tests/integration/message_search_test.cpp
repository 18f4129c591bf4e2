// Messages are found by their states, as each of them would tell its own, without asking all of them.

#include "messages/message_search.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "selection/selection.hpp"
#include "support/catch.hpp"
#include "support/operator_rig.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::message_search_test {
namespace {

void send_many(db::Connection& connection, int count, const std::string& action = "message") {
  connection.run(
      "INSERT INTO mailroom_messages (recipients, subject, text, action) "
      "SELECT ARRAY['ada' || n || '@x.example'], 's', 't', $2 FROM generate_series(1, $1::int) n",
      count, action);
}

/// Records an outcome of the tokens with these ids, whose batch is acknowledged.
void record(db::Connection& connection, int first, int last, const std::string& state) {
  connection.run(
      "INSERT INTO mailroom_deliveries (queue, token, state, attempts, unknowns, accepted_at, batch) "
      "SELECT 'mailroom', n, $3::text, 1, ($3 = 'unknown')::int, CASE $3 WHEN 'accepted' THEN now() END, 1 "
      "FROM generate_series($1::int, $2::int) n",
      first, last, state);
}

/// Messages 1 to 40, each with one token of the same id, in every state that a message has.
void make_each_state(const TestDatabase& database, db::Connection& connection) {
  send_many(connection, 34);
  connection.run(
      "INSERT INTO mailroom_messages (recipients, subject, text, send_after) VALUES (ARRAY['a@x.example'], "
      "'s', 't', now() + interval '1 h')");
  connection.run("ALTER TABLE mailroom_messages DISABLE TRIGGER after_message_insert");
  send_many(connection, 1);
  connection.run("ALTER TABLE mailroom_messages ENABLE TRIGGER after_message_insert");
  const auto session = attach(database, "mailroom");
  const auto first = session->claim({.limit = 25, .partial = true});
  REQUIRE(first.lease);
  record(connection, 1, 5, "accepted");
  record(connection, 6, 8, "deferred");
  record(connection, 9, 10, "rejected");
  record(connection, 11, 12, "unknown");
  record(connection, 13, 13, "expired");
  record(connection, 14, 14, "cancelled");
  connection.run(
      "INSERT INTO mailroom_bounces (digest, place, source, queue, token, address, kind, reason) SELECT "
      "sha256(n::text::bytea), 1, 'test', 'mailroom', n, 'a@x.example', (ARRAY['hard', 'complaint', "
      "'delivered', 'delayed'])[n], 'test' FROM generate_series(1, 4) n");
  const auto second =
      session->claim({.limit = 3, .partial = true, .receipt = claim::Receipt{*first.lease, {.emitted = 25}}});
  REQUIRE(second.lease);
  connection.run("SELECT mailroom_cancel(30)");
  connection.run("UPDATE tokens SET consumed_at = expires_at - 10 WHERE id = 31");
  connection.run("UPDATE tokens SET expires_at = created_at - 1 WHERE id = 32");
  connection.run("UPDATE mailroom_messages SET replaced_at = now() WHERE id = 33");
  connection.run("UPDATE tokens SET consumed_at = expires_at - 10 WHERE id = 33");
}

std::map<std::string, std::vector<std::int64_t>> ids_by_state(db::Connection& connection) {
  std::map<std::string, std::vector<std::int64_t>> ids;
  for (const auto& message : messages::list_messages(connection, {}, 1000)) {
    for (const auto& [state, count] : message.states)
      ids[state].push_back(message.id);
  }
  return ids;
}

}  // namespace

TEST_CASE("messages are found by each state that they tell") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  make_each_state(rig.database, connection);
  auto told = ids_by_state(connection);
  for (const auto* state :
       {"accepted", "deferred", "rejected", "unknown", "expired", "cancelled", "bounced", "complained",
        "delivered", "emitted", "leased", "waiting", "scheduled", "no_token", "skipped", "replaced"}) {
    CAPTURE(state);
    CHECK_FALSE(told[state].empty());
  }
  auto words = selection::outcome_words();
  words.insert(words.end(), {"scheduled", "replaced", "no_token"});
  for (const auto& word : words) {
    CAPTURE(word);
    std::vector<std::int64_t> found;
    for (const auto& message : messages::list_messages(connection, {.states = {word}}, 1000))
      found.push_back(message.id);
    CHECK(found == told[word]);
  }
}

TEST_CASE("a list by state asks few messages for their states, however many do not match") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  send_many(connection, 3'000);
  const auto session = attach(rig.database, "mailroom");
  const auto lease = session->claim({.limit = 50, .partial = true});
  REQUIRE(lease.lease);
  record(connection, 1, 40, "accepted");
  record(connection, 41, 43, "deferred");
  session->claim({.limit = 1, .partial = true, .receipt = claim::Receipt{*lease.lease, {.emitted = 50}}});
  const auto asked = [&](const std::string& state) {
    const auto calls = [&] {
      connection.run("SELECT pg_stat_force_next_flush()");
      return value<std::int64_t>(connection,
                                 "SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_user_functions WHERE "
                                 "funcname = 'mailroom_message_status'");
    };
    connection.run("SET track_functions = 'all'");
    const auto before = calls();
    messages::list_messages(connection, {.states = {state}, .actions = {"message"}}, 3);
    return calls() - before;
  };
  CHECK(asked("accepted") == 40);
  CHECK(asked("deferred") == 3);
  CHECK(asked("rejected") == 0);
  CHECK(asked("cancelled") == 0);
  CHECK(asked("leased") <= 1);
  CHECK(asked("waiting") == 103);
}

TEST_CASE("cancelling many messages says how many had left, and cancels all others") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  send_many(connection, 500);
  const auto session = attach(rig.database, "mailroom");
  const auto lease = session->claim({.limit = 20, .partial = true});
  REQUIRE(lease.lease);
  record(connection, 1, 16, "accepted");
  record(connection, 17, 19, "deferred");
  record(connection, 20, 20, "rejected");
  session->claim({.limit = 1, .partial = true, .receipt = claim::Receipt{*lease.lease, {.emitted = 20}}});
  const OperatorRig rig_of_operator(rig.database);
  const auto plan = rig_of_operator.mailroom({"message", "cancel", "--action", "message", "--dry-run"});
  CAPTURE(plan.errors);
  CHECK(plan.output.find("and 473 older messages") != std::string::npos);
  CHECK(plan.output.find("483 messages would be cancelled, for good.") != std::string::npos);
  CHECK(plan.output.find("16 messages have left already, and cannot be called back.") != std::string::npos);
  CHECK(plan.output.find("1 message has nothing to cancel") != std::string::npos);
  CHECK(plan.output.find("mailroom queue pause mailroom") != std::string::npos);
  CHECK(plan.output.find("mailroom revoke --action message ") != std::string::npos);
  const auto run = rig_of_operator.mailroom({"--yes", "message", "cancel", "--action", "message"});
  CAPTURE(run.errors);
  CHECK(run.status == 0);
  CHECK(run.output.find("done: 482 messages cancelled") != std::string::npos);
  CHECK(run.output.find("1 message is being sent just now") != std::string::npos);
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_messages WHERE cancelled_at IS NOT NULL") ==
        483);
}

TEST_CASE("a stopped cancellation says what it has done, and goes on when it is typed again") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  send_many(connection, 500);
  // The second page waits for this row.
  const auto other = rig.database.connect();
  other->run("BEGIN");
  other->run("SELECT FROM mailroom_messages WHERE id = 300 FOR UPDATE");
  const TemporaryDirectory directory;
  const std::string output = directory.path() / "stdout";
  const std::string errors = directory.path() / "stderr";
  Subprocess process({mailroom_binary, "--yes", "message", "cancel", "--action", "message"},
                     {{"MAILROOM_DATABASE_URL", rig.database.conninfo()}}, output, errors);
  REQUIRE(eventually([&] {
    return value<int>(connection, "SELECT count(*) FROM mailroom_messages WHERE cancelled_at IS NOT NULL") ==
           200;
  }));
  REQUIRE(eventually([&] {
    return value<bool>(connection,
                       "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND "
                       "wait_event_type = 'Lock')");
  }));
  process.signal(SIGINT);
  CHECK(process.wait() == 130);
  CHECK(read_file(output).find("done: 200 messages cancelled") != std::string::npos);
  CHECK(read_file(errors).find(
            "stopped by SIGINT; the server has ended its statement, after 200 of 500 messages") !=
        std::string::npos);
  other->run("ROLLBACK");
  const auto again =
      OperatorRig(rig.database).mailroom({"--yes", "message", "cancel", "--action", "message"});
  CHECK(again.output.find("done: 300 messages cancelled") != std::string::npos);
}

}  // namespace mailroom::test::message_search_test
