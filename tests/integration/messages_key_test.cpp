// Idempotency keys: one mail for a key, also of concurrent transactions, and replacement.

#include <fmt/format.h>
#include <future>

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::messages_key_test {
namespace {

std::string send(const std::string& key, const std::string& subject, const std::string& more = {}) {
  return fmt::format(
      "SELECT mailroom_send(ARRAY['a@x.example'], subject => '{}', text => 't', idempotency_key => '{}'{})",
      subject, key, more);
}

constexpr const char* replacing = ", options => '{\"replace\": true}'";

std::int64_t sent(db::Connection& connection, const std::string& sql) {
  return value<std::int64_t>(connection, sql);
}

std::string sqlstate_of(db::Connection& connection, const std::string& sql) {
  try {
    connection.run(sql);
  } catch (const db::DatabaseError& error) {
    return error.sqlstate();
  }
  return {};
}

/// `1 replaced, 2`: the messages with a key.
std::string messages(db::Connection& connection) {
  return value<std::string>(
      connection,
      "SELECT coalesce(string_agg(id || CASE WHEN replaced_at IS NOT NULL THEN ' replaced' ELSE '' END, ', ' "
      "ORDER BY id), '') FROM mailroom_messages WHERE idempotency_key IS NOT NULL");
}

int live_tokens(db::Connection& connection) {
  return value<int>(connection, "SELECT count(*) FROM tokens WHERE consumed_at IS NULL");
}

/// Runs a statement that waits for another transaction, and returns once it waits.
std::future<std::string> waiting(db::Connection& waiter, db::Connection& watcher, const std::string& sql) {
  waiter.run("SET lock_timeout = '10s'");
  const auto pid = value<int>(waiter, "SELECT pg_backend_pid()");
  auto result = std::async(std::launch::async, [&waiter, sql] {
    try {
      return std::string(waiter.run(sql)[0][0].c_str());
    } catch (const db::DatabaseError& error) {
      return error.sqlstate();
    }
  });
  REQUIRE(eventually([&] {
    return value<bool>(
        watcher,
        fmt::format("SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = {}",
                    pid));
  }));
  return result;
}

}  // namespace

TEST_CASE("a key that is used again returns the first message, and sends nothing") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto first = sent(connection, send("k", "s"));
  CHECK(sent(connection, send("k", "s")) == first);
  CHECK(sent(connection, send("k", "s", ", send_after => now() + interval '1 day'")) == first);
  CHECK(sqlstate_of(connection, send("k", "other")) == "23505");
  CHECK(sqlstate_of(connection,
                    send("k", "s", ", attachments => '[{\"name\": \"a\", \"content\": \"QUJD\"}]'")) ==
        "23505");
  CHECK(sent(connection, send("K", "s")) != first);
  CHECK(live_tokens(connection) == 2);
  connection.run(
      "INSERT INTO mailroom_messages (recipients, subject, text, idempotency_key) VALUES ('{a@x.example}', 's', 't', 'plain')");
  CHECK(sent(connection, send("plain", "s")) ==
        value<int>(connection, "SELECT id FROM mailroom_messages WHERE idempotency_key = 'plain'"));
}

TEST_CASE("a key is free again if its transaction rolls back, and others wait for that") {
  const DatabaseRig rig;
  const auto first = rig.database.connect();
  const auto second = rig.database.connect();
  for (const auto* end : {"ROLLBACK", "COMMIT"}) {
    const std::string key = end;
    first->run("BEGIN");
    const auto id = sent(*first, send(key, "s"));
    auto result = waiting(*second, *rig.connection, send(key, "s"));
    first->run(end);
    CHECK((result.get() == std::to_string(id)) == (key == "COMMIT"));
  }
  CHECK(live_tokens(*rig.connection) == 2);
}

TEST_CASE("in a serializable transaction a key that was taken meanwhile is a serialization failure") {
  const DatabaseRig rig;
  const auto second = rig.database.connect();
  for (const auto* level : {"REPEATABLE READ", "SERIALIZABLE"}) {
    second->run(fmt::format("BEGIN ISOLATION LEVEL {}", level));
    second->run("SELECT 1 FROM tokens");
    sent(*rig.connection, send(level, "s"));
    CHECK(sqlstate_of(*second, send(level, "s")) == "40001");
    second->run("ROLLBACK");
  }
  CHECK(live_tokens(*rig.connection) == 2);
}

TEST_CASE("a replacement cancels what has not left, and a statement that is run again changes nothing") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto first = sent(connection, send("k", "s", replacing));
  CHECK(sent(connection, send("k", "s", replacing)) == first);
  const auto second = sent(connection, send("k", "new", replacing));
  CHECK(messages(connection) == fmt::format("{} replaced, {}", first, second));
  CHECK(live_tokens(connection) == 1);
  CHECK(value<std::string>(connection, fmt::format("SELECT state FROM mailroom_message_status({})", first)) ==
        "replaced");
  CHECK(value<bool>(connection, fmt::format("SELECT mailroom_cancel({}) IS NULL", first)));
  // Of a scheduled message the time can be replaced.
  const auto later = sent(
      connection, send("later", "s", ", send_after => now() + interval '1 day'" + std::string(replacing)));
  const auto sooner = sent(
      connection, send("later", "s", ", send_after => now() + interval '1 hour'" + std::string(replacing)));
  CHECK(sooner != later);
  CHECK(value<int>(connection, "SELECT message FROM mailroom_schedule") == sooner);
  // What is sent already is not sent again for another time.
  connection.run("UPDATE mailroom_messages SET send_after = now() WHERE id = " + std::to_string(sooner));
  connection.run("SELECT mailroom_release(10)");
  CHECK(sent(connection,
             send("later", "s", ", send_after => now() + interval '2 hours'" + std::string(replacing))) ==
        sooner);
}

TEST_CASE("sixteen clients that fight over keys send one mail for each") {
  const DatabaseRig rig;
  constexpr int clients = 16;
  constexpr int keys = 5;
  std::vector<std::future<int>> results;
  for (int client = 0; client < clients; ++client) {
    results.push_back(std::async(std::launch::async, [&rig, client] {
      const auto connection = rig.database.connect();
      int failures = 0;
      for (int i = 0; i < 3 * keys; ++i) {
        connection->run("BEGIN");
        const auto key = fmt::format("k{}", (client + i) % keys);
        if (!sqlstate_of(*connection, send(key, fmt::format("s{}", (client + i) % 2), replacing)).empty())
          ++failures;
        connection->run((client + i) % 3 == 0 ? "ROLLBACK" : "COMMIT");
      }
      return failures;
    }));
  }
  for (auto& result : results)
    CHECK(result.get() == 0);
  auto& connection = *rig.connection;
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_messages WHERE replaced_at IS NULL") == keys);
  CHECK(live_tokens(connection) == keys);
  CHECK(value<int>(
            connection,
            "SELECT count(*) FROM mailroom_messages m WHERE replaced_at IS NULL AND NOT EXISTS (SELECT FROM "
            "tokens t WHERE t.message = m.id AND t.consumed_at IS NULL)") == 0);
}

TEST_CASE("the key of a message that never left and never will is free, by the function and by an INSERT") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const std::string insert =
      "INSERT INTO mailroom_messages (recipients, subject, text, idempotency_key) VALUES ('{a@x.example}', 's', 't', 'k') "
      "ON CONFLICT DO NOTHING RETURNING id";
  const auto end = [&](const std::string& how, std::int64_t id) {
    const auto token = fmt::format("(SELECT id FROM tokens WHERE message = {})", id);
    if (how == "cancelled") {
      CHECK(value<std::string>(connection, fmt::format("SELECT mailroom_cancel({})", id)) == "cancelled");
    } else if (how == "late") {
      connection.run(fmt::format("UPDATE tokens SET expires_at = 1 WHERE message = {}", id));
    } else {
      connection.run(fmt::format(
          "INSERT INTO mailroom_deliveries (queue, token, state, attempts, batch) VALUES ('mailroom', {}, '{}', 1, 1)",
          token, how));
    }
  };
  for (const auto* how : {"cancelled", "rejected", "expired", "late"}) {
    for (const auto& again : {send("k", "s"), send("k", "other"), send("k", "s", replacing), insert}) {
      INFO(how << ": " << again);
      const auto first = sent(connection, send("k", "s"));
      end(how, first);
      const auto second = sent(connection, again);
      CHECK(second > first);
      CHECK(value<std::string>(connection,
                               fmt::format("SELECT string_agg(state, ' ') FROM mailroom_message_status({})",
                                           first)) == (std::string(how) == "late" ? "expired" : how));
      CHECK(sent(connection, send("k", again == send("k", "other") ? "other" : "s")) == second);
      connection.run("DELETE FROM mailroom_messages; DELETE FROM tokens; DELETE FROM mailroom_deliveries");
    }
  }
}

TEST_CASE("a key stays taken by a message that has left, may have left, or still waits") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  int number = 0;
  for (const auto* delivery :
       {"'accepted', 0, now()", "'unknown', 1, NULL", "'expired', 1, NULL", "'deferred', 0, NULL"}) {
    INFO(delivery);
    const auto key = fmt::format("k{}", ++number);
    const auto first = sent(connection, send(key, "s"));
    connection.run(fmt::format(
        "INSERT INTO mailroom_deliveries (queue, token, batch, attempts, state, unknowns, accepted_at) "
        "SELECT 'mailroom', id, 1, 1, {} FROM tokens WHERE message = {}",
        delivery, first));
    CHECK(sent(connection, send(key, "s")) == first);
  }
  const auto waiting_one = sent(connection, send("waits", "s"));
  CHECK(sent(connection, send("waits", "s")) == waiting_one);
  const auto cancelled_too_late = sent(connection, send("late", "s"));
  connection.run(
      fmt::format("INSERT INTO mailroom_deliveries (queue, token, batch, attempts, state, accepted_at) "
                  "SELECT 'mailroom', id, 1, 1, 'accepted', now() FROM tokens WHERE message = {}",
                  cancelled_too_late));
  CHECK(value<std::string>(connection, fmt::format("SELECT mailroom_cancel({})", cancelled_too_late)) ==
        "sent");
  CHECK(sent(connection, send("late", "s")) == cancelled_too_late);
}

TEST_CASE("a statement says whether it asked for a message, knew it, or replaced another") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto done = [&](const std::string& statement) {
    return std::string(connection.run(statement + ", current_setting('mailroom.sent')")[0][1].c_str());
  };
  CHECK(done("SELECT mailroom_send('{a@x.example}', template => 't')") == "new");
  CHECK(done(send("k", "s")) == "new");
  CHECK(done(send("k", "s")) == "known");
  CHECK(done(send("k", "s", replacing)) == "known");
  CHECK(done(send("k", "other", replacing)) == "replaced");
  CHECK(done(send("k", "other")) == "known");
  CHECK(done("SELECT mailroom_send('{a@x.example}', template => 't')") == "new");
  connection.run("SELECT mailroom_cancel(idempotency_key => 'k')");
  CHECK(done(send("k", "other")) == "new");
}

TEST_CASE("a message is cancelled by its key or its reference") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto cancel = [&](const std::string& arguments) {
    return std::string(
        connection.run(fmt::format("SELECT coalesce(mailroom_cancel({}), 'null')", arguments))[0][0].c_str());
  };
  const auto first = sent(connection, send("k", "s", ", reference => 'order:1'"));
  CHECK(cancel("idempotency_key => 'other'") == "null");
  CHECK(cancel("idempotency_key => 'k'") == "cancelled");
  CHECK(cancel("idempotency_key => 'k'") == "null");
  CHECK(cancel("reference => 'order:1'") == "null");
  const auto left = sent(connection, send("left", "s", ", reference => 'order:1'"));
  connection.run(
      fmt::format("INSERT INTO mailroom_deliveries (queue, token, batch, attempts, state, accepted_at) "
                  "SELECT 'mailroom', id, 1, 1, 'accepted', now() FROM tokens WHERE message = {}",
                  left));
  CHECK(cancel("reference => 'order:1'") == "sent");
  sent(connection, send("waits", "s", ", reference => 'order:1'"));
  sent(connection, send("later", "s", ", reference => 'order:1', send_after => now() + interval '1 day'"));
  CHECK(cancel("reference => 'order:1'") == "cancelled");
  CHECK(
      value<std::string>(
          connection,
          "SELECT string_agg(id::text, ' ' ORDER BY id) FROM mailroom_messages WHERE cancelled_at IS NULL") ==
      std::to_string(left));
  CHECK(cancel("NULL") == "null");
  CHECK(sqlstate_of(connection, "SELECT mailroom_cancel(1, reference => 'x')") == "22023");
  CHECK(first > 0);
}

TEST_CASE("options are checked") {
  const DatabaseRig rig;
  CHECK(sqlstate_of(*rig.connection, send("k", "s", ", options => '{\"replce\": true}'")) == "22023");
  CHECK(sqlstate_of(*rig.connection, send("k", "s", ", options => '{\"notify\": 1}'")) == "22023");
  CHECK(sqlstate_of(*rig.connection, send("k", "s", ", options => '{\"replace\": 1}'")) == "22023");
  CHECK(sqlstate_of(*rig.connection, send("k", "s", ", options => '[]'")) == "22023");
  CHECK(sqlstate_of(*rig.connection,
                    send("k", "s", ", options => NULL, headers => 'null', attachments => 'null'"))
            .empty());
}

}  // namespace mailroom::test::messages_key_test
