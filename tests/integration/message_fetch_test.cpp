// Tokens of messages, as consumers read them: in small and in large batches, with an action that is new to
// the session.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::message_fetch_test {
namespace {

/// What a consumer reads of a token.
std::string text_of(const claim::TokenRow& row) {
  auto text =
      fmt::format("{} {} {} {} {} {} {}", row.id, row.action->name, row.secret ? "signed" : "unsigned",
                  row.code.size(), row.email, row.login, static_cast<int>(row.state));
  if (!row.message) return text;
  const auto& content = *row.content;
  return text + fmt::format(" message {} recipient {} [{}] [{}] {} {} {} {} {} {}", *row.message,
                            row.recipient, fmt::join(content.recipients, ";"), fmt::join(content.cc, ";"),
                            content.template_name.value_or("-"), content.locale, content.data,
                            content.subject.value_or("-"), content.text.value_or("-").size(),
                            content.reference);
}

std::vector<std::string> read_next(claim::QueueSession& session) {
  const auto reply = session.claim({.limit = 100, .partial = true});
  std::vector<std::string> rows;
  if (reply.lease)
    session.fetch(*reply.lease, [&](const claim::TokenRow& row) { rows.push_back(text_of(row)); });
  return rows;
}

}  // namespace

TEST_CASE("a large batch with messages holds the same rows as small ones, and each token once") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("SELECT mailroom_create_action('magic_link', path => '/magic', has_code => true)");
  insert_accounts(*connection, 400);
  connection->run(
      "INSERT INTO mailroom_messages (recipients, cc, template, locale, data, reference) "
      "SELECT ARRAY['Ada <ada' || g || '@mail.example>'], ARRAY['bo' || g || '@mail.example'], 'receipt', 'de-AT', "
      "jsonb_build_object('order', g), 'order:' || g FROM generate_series(1, 300) g");
  connection->run(
      "INSERT INTO mailroom_messages (recipients, subject, text) "
      "SELECT ARRAY['eve' || g || '@mail.example'], 'Subject ' || g, repeat('ü', 1000) FROM generate_series(1, 200) g");
  connection->run(
      "INSERT INTO mailroom_messages (recipients, action) "
      "SELECT ARRAY['kim' || g || '@mail.example'], 'magic_link' FROM generate_series(1, 200) g");
  insert_accounts(*connection, 100, "more");
  const auto small = rows_at(database, *connection, 300, text_of);
  CHECK(small.size() == 400 + 600 + 200 + 200 + 100);
  CHECK(rows_at(database, *connection, 10'000, text_of) == small);
  const auto has = [&](const std::string& part) {
    return std::count_if(small.begin(), small.end(),
                         [&](const auto& row) { return row.find(part) != std::string::npos; });
  };
  CHECK(has("message unsigned 0 ada7@mail.example  0 message ") == 1);
  CHECK(has("[Ada <ada7@mail.example>] [bo7@mail.example] receipt de-AT {\"order\": 7} - 1 order:7") == 2);
  CHECK(has("magic_link signed 5 kim9@mail.example  0 message ") == 1);
  CHECK(has(" magic_link  ") == 200);
  CHECK(has("Subject 7 2000") == 1);
}

TEST_CASE("messages of any size come with their token or are read for it, whoever reads them") {
  TestDatabase database;
  const auto connection = database.connect();
  // Some come along, some do not, and a part of them is full after a few. Those with two recipients have two
  // tokens.
  connection->run(
      "INSERT INTO mailroom_messages (recipients, subject, text, headers) "
      "SELECT CASE WHEN g % 7 = 0 THEN ARRAY['ada' || g || '@mail.example', 'bo@mail.example'] "
      "ELSE ARRAY['ada' || g || '@mail.example'] END, 'Subject ' || g, "
      "repeat(chr(97 + g % 26), CASE g % 5 WHEN 0 THEN 1500000 WHEN 1 THEN 50000 WHEN 2 THEN 32768 ELSE 100 END), "
      "NULL FROM generate_series(1, 90) g");
  insert_accounts(*connection, 30);
  connection->run(
      "INSERT INTO mailroom_messages (recipients, subject, text) "
      "SELECT ARRAY['late' || g || '@mail.example'], 'Late ' || g, 'x' FROM generate_series(1, 1000) g");
  connection->run("DELETE FROM mailroom_messages WHERE id % 11 = 3");
  const auto whole = [](const claim::TokenRow& row) {
    auto text = text_of(row);
    if (row.content != nullptr) text += " " + std::string(row.content->text.value_or("-"));
    return text;
  };
  const auto of_ten = rows_at(database, *connection, 10, whole);
  const auto tokens = connection->run(
      "SELECT count(*) FROM tokens t LEFT JOIN mailroom_messages m ON m.id = t.message "
      "WHERE t.message IS NULL OR m.id IS NOT NULL");
  CHECK(of_ten.size() == tokens[0][0].as<std::size_t>());
  for (const int limit : {90, 150, 10'000}) {
    INFO(limit);
    CHECK(rows_at(database, *connection, limit, whole) == of_ten);
  }
  for (const int limit : {10, 90, 500}) {
    INFO(limit);
    CHECK(rows_at(database, *connection, limit, whole, true) == of_ten);
  }
}

TEST_CASE("a session learns of an action that is created while it runs") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto session = attach(database);
  connection->run("SELECT mailroom_create_action('receipt', template => 'bill')");
  connection->run(
      "INSERT INTO mailroom_messages (recipients, action) VALUES ('{ada@mail.example}', 'receipt')");
  const auto rows = read_next(*session);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].find("receipt unsigned") != std::string::npos);
  CHECK(rows[0].find(" bill ") != std::string::npos);
}

TEST_CASE("a message waits in the schedule until it is released") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto session = attach(database);
  connection->run(
      "INSERT INTO mailroom_messages (recipients, subject, text, send_after) "
      "VALUES ('{ada@mail.example}', 'Now', 'x', clock_timestamp() + interval '300 ms'), "
      "('{ada@mail.example}', 'Later', 'x', clock_timestamp() + interval '1 day')");
  CHECK(session->release() == 0);
  CHECK(read_next(*session).empty());
  REQUIRE(eventually([&] { return session->claim({.limit = 10, .routine = true}).released == 1; }));
  CHECK(session->release() == 0);
  const auto rows = read_next(*session);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].find("Now") != std::string::npos);
}

}  // namespace mailroom::test::message_fetch_test
