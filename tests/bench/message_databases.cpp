#include "bench/message_databases.hpp"

#include <fmt/format.h>

#include "bench/loading.hpp"

namespace mailroom::bench {
namespace {

constexpr std::int64_t messages_a_run = 20'000;

/// Due tokens 1 to $1, of accounts 1 to $2; every $3rd is of a message with the same id, none if $3 is 0.
constexpr const char* insert_backlog = R"(
INSERT INTO tokens (id, account, action, secret, code, message, recipient, expires_at)
SELECT g, CASE WHEN NOT k.is_message THEN 1 + g % ($2::bigint / 3) * 3 END,
       CASE WHEN k.is_message THEN 'message' ELSE 'activation' END::token_action,
       CASE WHEN NOT k.is_message THEN sha256(int8send(g)) END, CASE WHEN NOT k.is_message THEN '12345' END,
       CASE WHEN k.is_message THEN g END, CASE WHEN k.is_message THEN 1 END,
       extract(epoch FROM now())::bigint + 2592000
FROM generate_series(1, $1::bigint) g, LATERAL (SELECT $3::bigint > 0 AND g % greatest($3, 1) = 0 AS is_message) k)";

/// SQL that inserts messages 1 to $1, every $2nd.
std::string insert_messages(const std::string& body) {
  return fmt::format(R"(
INSERT INTO mailroom_messages (id, recipients, subject, text)
SELECT g, ARRAY['user' || g || '@bench.example'], 'Your receipt', {}
FROM generate_series($2::bigint, $1::bigint, $2::bigint) g)",
                     body);
}

/// Every `every`th of the due tokens is of a message.
Backlog load_messages(Stage& stage, const Backlog& backlog, std::int64_t every, const std::string& body) {
  make_live_database(stage, backlog.database);
  stage.once(backlog.database + " tokens", [&] {
    const auto connection = stage.connect(backlog.database);
    without_triggers(*connection);
    connection->run(insert_backlog, backlog.due, account_count(stage), every);
    if (every > 0) connection->run(insert_messages(body), backlog.due, every);
    finish_loading(*connection);
  });
  return backlog;
}

}  // namespace

std::string body_of(const std::string& number) {
  return fmt::format("array_to_string(ARRAY(SELECT md5({} || '-' || i) FROM generate_series(1, 62) i), ' ')",
                     number);
}

std::string body_literal() {
  std::string text;
  for (unsigned i = 1; text.size() < 2'000; ++i)
    text += fmt::format("{:08x} ", i * 2'654'435'761U);
  return text;
}

Backlog half_messages(Stage& stage) {
  return load_messages(stage, {.database = "half_messages", .due = stage.scaled(30'000)}, 2, body_of("g"));
}

Backlog all_messages(Stage& stage) {
  return load_messages(stage, {.database = "messages", .due = stage.scaled(messages_a_run)}, 1, body_of("g"));
}

Backlog large_messages(Stage& stage) {
  // Compressed in the table, so that loading is quick.
  return load_messages(stage, {.database = "large_messages", .due = messages_a_run}, 1,
                       "repeat(md5(g::text), 1600)");
}

Backlog tokens_beside_schedule(Stage& stage) {
  const Backlog backlog{.database = "scheduled", .due = stage.scaled(30'000)};
  load_messages(stage, backlog, 0, "");
  stage.once("a million scheduled", [&] {
    const auto connection = stage.connect(backlog.database);
    without_triggers(*connection);
    connection->run(insert_messages("'Tomorrow'"), stage.scaled(1'000'000), 1);
    connection->run("UPDATE mailroom_messages SET send_after = now() + interval '1 day'");
    connection->run(
        "INSERT INTO mailroom_schedule (send_after, message) SELECT send_after, id FROM mailroom_messages");
    finish_loading(*connection);
  });
  return backlog;
}

std::string waiting_messages(Stage& stage) {
  const std::string database = "released";
  make_live_database(stage, database);
  stage.once("waiting messages", [&] {
    const auto connection = stage.connect(database);
    without_triggers(*connection);
    connection->run(insert_messages("'Now'"), stage.scaled(100'000), 1);
    finish_loading(*connection);
  });
  return database;
}

std::int64_t schedule_again(Stage& stage, const std::string& database) {
  clear_queue(stage, database);
  const auto connection = stage.connect(database);
  const auto due = connection->run(R"(
INSERT INTO mailroom_schedule (send_after, message)
SELECT now() - (1 + random()) * interval '1 minute', id FROM mailroom_messages RETURNING message)");
  connection->run("VACUUM ANALYZE mailroom_schedule");
  return static_cast<std::int64_t>(due.size());
}

}  // namespace mailroom::bench
