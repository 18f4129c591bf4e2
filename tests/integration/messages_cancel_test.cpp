// The schedule, and messages that are cancelled in each state: none is sent that was said to be cancelled.

#include <array>
#include <fmt/format.h>
#include <future>

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::messages_cancel_test {
namespace {

std::int64_t send(db::Connection& connection, const std::string& more = {}) {
  return value<std::int64_t>(
      connection,
      fmt::format("SELECT mailroom_send(ARRAY['a@x.example'], subject => 's', text => 't'{})", more));
}

/// Empty for null.
std::string cancel(db::Connection& connection, std::int64_t message) {
  return connection.run("SELECT mailroom_cancel($1)", message)[0][0].c_str();
}

std::string state(db::Connection& connection, std::int64_t message) {
  return value<std::string>(
      connection, fmt::format("SELECT string_agg(state, ',') FROM mailroom_message_status({})", message));
}

int released(db::Connection& connection) {
  return value<int>(connection, "SELECT released FROM mailroom_release(1000)");
}

/// Lets the time of every scheduled message come.
void make_due(db::Connection& connection) {
  connection.run("UPDATE mailroom_messages SET send_after = now() WHERE send_after > now()");
}

claim::Receipt receipt(const claim::ClaimReply& claim, int emitted) {
  return {*claim.lease, {.emitted = emitted}};
}

}  // namespace

TEST_CASE("a scheduled message has no token before its time, and one afterwards") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto message = send(connection, ", send_after => now() + interval '1 hour'");
  CHECK(state(connection, message) == "scheduled");
  CHECK(value<bool>(
      connection, "SELECT released = 0 AND next > now() + interval '59 minutes' FROM mailroom_release(10)"));
  CHECK(value<int>(connection, "SELECT count(*) FROM tokens") == 0);
  make_due(connection);
  CHECK(released(connection) == 1);
  CHECK(released(connection) == 0);
  CHECK(state(connection, message) == "waiting");
  CHECK(value<int>(connection, "SELECT expires_at - created_at FROM tokens") == 3 * 86400);
  send(connection, ", send_after => now() - interval '1 hour'");
  CHECK(value<int>(connection, "SELECT count(*) FROM tokens") == 2);
}

TEST_CASE("messages are released in the order of their times, some a call, by several sessions") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  connection.run(
      "INSERT INTO mailroom_messages (recipients, template, send_after) SELECT '{a@x.example}', 't', now() + g * interval '1 s' "
      "FROM generate_series(10, 1, -1) g");
  connection.run("UPDATE mailroom_schedule SET send_after = send_after - interval '1 hour'");
  const auto other = rig.database.connect();
  connection.run("BEGIN");
  CHECK(value<bool>(connection, "SELECT released = 3 AND next < now() FROM mailroom_release(3)"));
  CHECK(value<int>(*other, "SELECT released FROM mailroom_release(3)") == 3);
  connection.run("COMMIT");
  CHECK(released(*other) == 4);
  CHECK(value<std::string>(
            connection, "SELECT string_agg(message::text, ',' ORDER BY id) FROM tokens WHERE message > 7") ==
        "10,9,8");
  CHECK(value<int>(connection, "SELECT count(DISTINCT message) FROM tokens") == 10);
}

TEST_CASE("a message whose time is changed leaves at the new one, and one that has left is refused") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto message = send(connection, ", send_after => now() + interval '1 hour'");
  const auto moved_to = [&](const std::string& time) {
    return refusal(connection,
                   fmt::format("UPDATE mailroom_messages SET send_after = {} WHERE id = {}", time, message));
  };
  CHECK(moved_to("now() + interval '2 hours'").empty());
  CHECK(value<bool>(connection, "SELECT next > now() + interval '119 minutes' FROM mailroom_release(10)"));
  CHECK(state(connection, message) == "scheduled");
  CHECK(moved_to("expires_at").empty());
  CHECK(moved_to("'infinity'").starts_with("23514"));
  connection.run(fmt::format(
      "UPDATE mailroom_messages SET reference = 'x', send_after = send_after WHERE id = {}", message));
  CHECK(released(connection) == 1);
  CHECK(state(connection, message) == "waiting");
  CHECK(moved_to("now() + interval '1 hour'").starts_with("55000"));
  CHECK(released(connection) == 0);
  const auto cancelled = send(connection, ", send_after => now() + interval '1 hour'");
  connection.run(fmt::format(
      "UPDATE mailroom_messages SET send_after = now() + interval '3 hours' WHERE id = {}", cancelled));
  CHECK(value<std::string>(connection, fmt::format("SELECT mailroom_cancel({})", cancelled)) == "cancelled");
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_schedule") == 0);
}

TEST_CASE("a message that has tokens already leaves the schedule, and holds nobody up") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto made = send(connection, ", send_after => now() + interval '1 hour'");
  const auto other = send(connection, ", send_after => now() + interval '1 hour'");
  connection.run("ALTER TABLE mailroom_messages DISABLE TRIGGER before_message_rescheduled");
  connection.run(fmt::format("UPDATE mailroom_messages SET send_after = now() WHERE id = {}", made));
  connection.run("ALTER TABLE mailroom_messages ENABLE TRIGGER before_message_rescheduled");
  CHECK(
      value<int>(
          connection,
          "SELECT count(*) FROM mailroom_lost_messages(now() - interval '1 day', now() + interval '1 s')") ==
      0);
  connection.run(fmt::format("SELECT mailroom_make_tokens(ARRAY[{}])", made));
  connection.run("UPDATE mailroom_schedule SET send_after = now()");
  CHECK(released(connection) == 2);
  CHECK(
      value<std::string>(connection, "SELECT string_agg(message::text, ',' ORDER BY message) FROM tokens") ==
      fmt::format("{},{}", made, other));
}

TEST_CASE("a message whose time came while its transaction was open is found by the look at all") {
  const DatabaseRig rig;
  const auto late = rig.database.connect();
  late->run("BEGIN");
  send(*late, ", send_after => now() + interval '1 hour'");
  late->run("UPDATE mailroom_schedule SET send_after = clock_timestamp()");
  CHECK(released(*rig.connection) == 0);
  late->run("COMMIT");
  CHECK(released(*rig.connection) == 1);
  // Further back than the minute that a session looks at each time.
  send(*rig.connection, ", send_after => now() + interval '1 hour'");
  rig.connection->run("UPDATE mailroom_schedule SET send_after = now() - interval '1 hour'");
  CHECK(released(*rig.connection) == 0);
  rig.connection->run(
      "SELECT set_config('mailroom.released', split_part(current_setting('mailroom.released'), ' ', 1) || ' 0', false)");
  CHECK(released(*rig.connection) == 1);
}

TEST_CASE("a message is cancelled in each state") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto session = attach(rig.database);
  const auto scheduled = send(connection, ", send_after => now() + interval '1 hour'");
  CHECK(cancel(connection, scheduled) == "cancelled");
  CHECK(cancel(connection, scheduled).empty());
  CHECK(state(connection, scheduled) == "cancelled");
  const auto waiting = send(connection);
  CHECK(cancel(connection, waiting) == "cancelled");
  CHECK(drain(*session).empty());
  const auto leased = send(connection);
  const auto claim = session->claim({.limit = 10, .partial = true});
  REQUIRE(claim.lease);
  CHECK(state(connection, leased) == "leased");
  CHECK(cancel(connection, leased) == "sending");
  // Its rows came with the claim.
  CHECK(fetch_due(*session, *claim.lease).ids == Ids{2});
  const auto emitted = send(connection);
  const auto next = session->claim({.limit = 10, .partial = true, .receipt = receipt(claim, 1)});
  REQUIRE(next.lease);
  session->claim({.limit = 0, .receipt = receipt(next, 1)});
  CHECK(state(connection, emitted) == "emitted");
  CHECK(cancel(connection, emitted) == "sent");
  CHECK(cancel(connection, 999).empty());
}

TEST_CASE("a message with an outcome is cancelled if no mail of it has left") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  for (const auto& [record, result, word] : std::vector<std::array<std::string, 3>>{
           {"'deferred', 1, 0, now() + interval '1 hour', NULL", "cancelled", "deferred"},
           {"'accepted', 1, 0, NULL, now()", "sent", "accepted"},
           {"'unknown', 1, 1, NULL, NULL", "sent", "unknown"},
           {"'rejected', 1, 0, NULL, NULL", "cancelled", "rejected"}}) {
    const auto message = send(connection);
    const auto session = attach(rig.database);
    const auto claim = session->claim({.limit = 10, .partial = true});
    REQUIRE(claim.lease);
    session->claim({.limit = 0, .receipt = receipt(claim, 1)});
    connection.run(fmt::format(
        "INSERT INTO mailroom_deliveries (queue, token, state, attempts, unknowns, not_before, accepted_at, batch) "
        "SELECT 'mailroom', max(id), {}, {} FROM tokens",
        record, claim.lease->batch));
    INFO(record);
    CHECK(state(connection, message) == word);
    CHECK(cancel(connection, message) == result);
  }
}

TEST_CASE("a token that was committed late, and emitted, is sent") {
  const DatabaseRig rig;
  const auto late = rig.database.connect();
  const auto session = attach(rig.database);
  late->run("BEGIN");
  const auto message = send(*late);
  send(*rig.connection);
  CHECK(drain(*session) == Ids{2});
  late->run("COMMIT");
  CHECK(drain(*session) == Ids{1});
  CHECK(state(*rig.connection, message) == "emitted");
  CHECK(cancel(*rig.connection, message) == "sent");
}

TEST_CASE(
    "no claim leases a token while a transaction cancels its message, and none is lost if that rolls back") {
  for (const bool commits : {true, false}) {
    for (const bool in_savepoint : {true, false}) {
      const TestDatabase database;
      const auto connection = database.connect();
      const auto other = database.connect();
      const auto session = attach(database);
      CAPTURE(commits, in_savepoint);
      const auto message = send(*connection);
      send(*connection);
      other->run("BEGIN");
      if (in_savepoint) other->run("SAVEPOINT s");
      CHECK(cancel(*other, message) == "cancelled");
      if (in_savepoint) other->run("RELEASE s");
      // Others go on meanwhile.
      CHECK(drain(*session) == Ids{2});
      send(*connection);
      CHECK(drain(*session) == Ids{3});
      CHECK(drain(*session, 1).empty());
      other->run(commits ? "COMMIT" : "ROLLBACK");
      CHECK(drain(*session) == (commits ? Ids{} : Ids{1}));
      CHECK(drain(*session).empty());
      // A gap stays only while a transaction of the server is open that was so then, also one of another
      // test.
      CHECK(eventually([&] {
        return drain(*session).empty() &&
               value<int>(*connection,
                          "SELECT count(*) FROM mailroom_gaps g WHERE g.id = ANY ((SELECT gap_ids FROM "
                          "mailroom_batches ORDER BY id DESC LIMIT 1)::bigint[]) "
                          "AND g.horizon < pg_snapshot_xmin(pg_current_snapshot())") == 0;
      }));
    }
  }
}

TEST_CASE(
    "a deferred token, and one that is replayed, are not leased while their message is being cancelled") {
  for (const bool is_deferred : {true, false}) {
    const DatabaseRig rig;
    auto& connection = *rig.connection;
    const auto session = attach(rig.database);
    const auto message = send(connection);
    CHECK(drain(*session) == Ids{1});
    if (is_deferred) {
      connection.run(
          "INSERT INTO mailroom_deliveries (queue, token, state, attempts, not_before, batch) "
          "VALUES ('mailroom', 1, 'deferred', 1, '-infinity', 1)");
    } else {
      connection.run("SELECT mailroom_replay('mailroom', '{1}', '{}')");
    }
    const auto other = rig.database.connect();
    other->run("BEGIN");
    CHECK(cancel(*other, message) == (is_deferred ? "cancelled" : "sent"));
    CHECK(drain(*session).empty());
    CHECK(drain(*session).empty());
    other->run("ROLLBACK");
    CHECK(drain(*session) == Ids{1});
  }
}

TEST_CASE("a cancellation waits for the claim that may lease its token, and then says so") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto message = send(connection);
  const auto claimer = rig.database.connect();
  claimer->run("SELECT mailroom_attach('mailroom')");
  claimer->run("BEGIN");
  claimer->run(
      "SELECT * FROM mailroom_claim(pg_backend_pid(), 'mailroom', 10, true, true, false, false, NULL, NULL)");
  const auto other = rig.database.connect();
  auto result = std::async(std::launch::async, [&] { return cancel(*other, message); });
  REQUIRE(eventually([&] {
    return value<int>(
               connection,
               "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = "
               "(SELECT oid FROM pg_database WHERE datname = current_database())") > 0;
  }));
  claimer->run("COMMIT");
  CHECK(result.get() == "sending");
}

TEST_CASE(
    "a repeatable read transaction that cannot see the newest batches does not say that a message is cancelled") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto session = attach(rig.database);
  const auto first = send(connection);
  const auto second = send(connection);
  const auto other = rig.database.connect();
  other->run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  CHECK(value<int>(*other, "SELECT count(*) FROM tokens") == 2);
  CHECK(drain(*session) == Ids{1, 2});
  CHECK(cancel(*other, first) == "sending");
  other->run("ROLLBACK");
  CHECK(cancel(connection, second) == "sent");
}

TEST_CASE("an operator cancels the messages of others, which is recorded") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto message = send(connection);
  connection.run(fmt::format("UPDATE mailroom_messages SET owner = 0 WHERE id = {}", message));
  connection.run("SET mailroom.actor = 'ops'");
  CHECK(cancel(connection, message) == "cancelled");
  CHECK(value<std::string>(
            connection,
            "SELECT kind || ' ' || actor || ' ' || (details->>'message') FROM mailroom_operations") ==
        fmt::format("cancel message ops {}", message));
}

}  // namespace mailroom::test::messages_cancel_test
