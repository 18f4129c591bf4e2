// What the search of the desk reads beside many mails: each name by its index.

#include "desk/desk_search.hpp"

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/test_database.hpp"

namespace mailroom::test::desk_search_test {
namespace {

constexpr int mails = 40'000;

/// A month of them, each for an address, a reference and a queue id of its own; every tenth of an application
/// that has given its Message-ID.
void fill(db::Connection& connection) {
  connection.run("SET session_replication_role = replica");
  connection.run(
      "INSERT INTO mailroom_messages (id, recipients, subject, text, reference, created_at) SELECT g, ARRAY['Person ' || g || ' <p' || g || "
      "'@mail.example>'], 's', 't', 'order:' || g, now() - ($1::int - g) * interval '1 min' FROM generate_series(1, $1::int) g",
      mails);
  connection.run(
      "INSERT INTO tokens (id, action, message, recipient, created_at, expires_at) SELECT g, 'message', g, 1, "
      "extract(epoch FROM now())::bigint - ($1::int - g) * 60, extract(epoch FROM now())::bigint + 3600 FROM generate_series(1, $1::int) g",
      mails);
  connection.run(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch, last_at, accepted_at, reply, message_id) SELECT 'mailroom', g, 'accepted', 1, "
      "now() - ($1::int - g) * interval '1 min', now(), '250 2.0.0 Ok: queued as 4Zb' || g, "
      "CASE WHEN g % 10 = 0 THEN g || '@shop.example' ELSE 'mailroom.AB12.m' || g || '.mailroom@app.example' END "
      "FROM generate_series(1, $1::int) g",
      mails);
  connection.run(
      "INSERT INTO accounts (email, login) SELECT 'u' || g || '@mail.example', 'user' || g FROM generate_series(1, $1::int) g",
      mails);
  connection.run("SET session_replication_role = origin");
  connection.run("VACUUM ANALYZE");
}

/// Of the large tables, those of this session included.
std::int64_t whole_readings(db::Connection& connection) {
  connection.run("SELECT pg_stat_force_next_flush()");
  return value<std::int64_t>(
      connection,
      "SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE relname IN ('mailroom_messages', "
      "'tokens', 'mailroom_deliveries', 'accounts')");
}

}  // namespace

TEST_CASE("each name that the desk looks for has its index") {
  TestDatabase database;
  const auto connection = database.connect();
  fill(*connection);
  const auto before = whole_readings(*connection);
  const auto found = [&](const std::string& text) { return desk::find_at_desk(*connection, text).messages; };

  CHECK(found("p77@mail.example") == std::vector<std::int64_t>{77});
  CHECK(found("Person 77 <P77@Mail.example>") == std::vector<std::int64_t>{77});
  CHECK(found("order:78") == std::vector<std::int64_t>{78});
  CHECK(found("message:79") == std::vector<std::int64_t>{79});
  CHECK(found("79") == std::vector<std::int64_t>{79});
  CHECK(found("<mailroom.AB12.m81.mailroom@app.example>") == std::vector<std::int64_t>{81});
  CHECK(found("mailroom.AB12.m81.mailroom@app.example") == std::vector<std::int64_t>{81});
  CHECK(found("<80@shop.example>") == std::vector<std::int64_t>{80});
  CHECK(found(fmt::format("4Zb{}", mails - 10)) == std::vector<std::int64_t>{mails - 10});
  CHECK(desk::find_at_desk(*connection, "u5@mail.example").account->login == "user5");
  CHECK(desk::find_at_desk(*connection, "user5").account->email == "u5@mail.example");
  // What is on record nowhere.
  for (const auto* text : {"nobody@mail.example", "order:0", "message:0",
                           "<mailroom.XX.m81.mailroom@app.example>", "<1@shop.example>", "4Zb000", "x"}) {
    INFO(text);
    CHECK(desk::find_at_desk(*connection, text).empty());
  }
  CHECK(desk::find_at_desk(*connection, "4Zb000").note.empty() == false);
  CHECK(desk::find_at_desk(*connection, "<1@eu-west-1.amazonses.com>").note.find("Amazon SES") !=
        std::string::npos);
  CHECK_THROWS_AS(desk::find_at_desk(*connection, std::string(86, 'A')), Error);
  CHECK(whole_readings(*connection) == before);
}

TEST_CASE("the desk finds the newest mails to an address that has many, and says that there are more") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run(
      "SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 's', text => 't') FROM generate_series(1, 25)");
  const auto found = desk::find_at_desk(*connection, "ada@mail.example");
  CHECK(found.messages.size() == desk::most_found);
  CHECK(found.has_more);
  CHECK(found.messages.front() > found.messages.back());
}

}  // namespace mailroom::test::desk_search_test
