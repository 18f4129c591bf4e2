// Events as text: lines, JSON.

#include "cmd/events/event_text.hpp"

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "cmd/tail/tail_report.hpp"
#include "support/catch.hpp"

namespace mailroom::test::event_text_test {

using namespace std::chrono_literals;

namespace {

feed::StoredToken token() {
  return {.id = 51,
          .action = "password_recovery",
          .state = "due",
          .account = {.id = 17, .email = "user@mail.example", .login = "user"}};
}

feed::Event created(const feed::StoredToken& token) {
  return {feed::EventKind::created, Moment(1'795'252'045s), token};
}

queue::BatchRecord batch() {
  return {.id = 7,
          .queue = "mailroom",
          .tokens = {{41, 46}, {47, 48}},
          .claimed_by = "mailroom collect@host:77",
          .emitted = 5,
          .skipped = {.expired = 1}};
}

feed::Event emitted(const queue::BatchRecord& batch) {
  return {feed::EventKind::emitted, Moment(1'795'252'045'266'123us), batch};
}

std::string line(const feed::Event& event, std::optional<std::size_t> columns = std::nullopt,
                 bool colour = false) {
  return cmd::EventLines({.queue = "mailroom", .columns = columns, .colour = colour}).render(event);
}

}  // namespace

TEST_CASE("text from the database cannot control a terminal or begin a line") {
  CHECK(printable("a\x1b[31mb\nc\x7f") == "a?[31mb?c?");
  CHECK(printable("ü\xC2\x9B"
                  "31m") == "ü?31m");
  CHECK(printable("caf\xe9") == "caf?");
  CHECK(printable("grün") == "grün");
}

TEST_CASE("a line has the time, the event and the actor") {
  CHECK(line(created(token())) ==
        "2026-11-21T09:07:25Z  token 51    created    recovery    17 user@mail.example\n");
  auto expired = token();
  expired.state = "expired";
  CHECK(line(created(expired)) ==
        "2026-11-21T09:07:25Z  token 51    created    recovery    17 user@mail.example  expired\n");
  CHECK(line(emitted(batch())) ==
        "2026-11-21T09:07:25Z  batch 7     emitted    5 tokens: 41-45,47, skipped 1 expired, by "
        "collect@host:77\n");
}

TEST_CASE("with a filter only the matching tokens of a batch are named") {
  auto record = batch();
  record.skipped = {};
  auto event = emitted(record);
  event.matches = {43, 44};
  CHECK(line(event) ==
        "2026-11-21T09:07:25Z  batch 7     emitted    2 of 6 tokens: 43-44, by collect@host:77\n");
  record.queue = "second";
  event.record = record;
  event.matches = {47};
  CHECK(line(event) ==
        "2026-11-21T09:07:25Z  batch 7     emitted    1 of 6 tokens: 47, queue second, by collect@host:77\n");
}

TEST_CASE("on a terminal a line is cut at the address, and coloured on request") {
  auto record = token();
  record.account.email = "a.very.long.address.indeed@mail.example";
  record.state = "wrong status";
  const auto event = created(record);
  const auto cut = line(event, 80);
  CHECK(display_width(cut) == 80 + 1);
  CHECK(cut.find("…  wrong-status\n") != std::string::npos);
  CHECK(line(event, 200) == line(event));
  CHECK(line(created(token()), 80, true).find("\x1b[32mcreated  \x1b[0m") != std::string::npos);
  const feed::Event suspended{feed::EventKind::suspended, event.at,
                              feed::Operation{.kind = feed::EventKind::suspended,
                                              .actor = "alice@host",
                                              .reason = "spam\nreports",
                                              .account = record.account,
                                              .details = "{}"}};
  CHECK(line(suspended, 80) ==
        "2026-11-21T09:07:25Z  account 17  suspended  a.ver…, by alice@host: spam?reports\n");
}

TEST_CASE("a masked event shows neither address nor login") {
  const auto event = cmd::masked(created(token()));
  for (const auto& text : {line(event), cmd::render_json(event)}) {
    CHECK(text.find("user") == std::string::npos);
    CHECK(text.find("u***@mail.example") != std::string::npos);
  }
}

TEST_CASE("an operation's line has the operation, its actor and its reason") {
  feed::Operation operation{
      .kind = feed::EventKind::rewound,
      .actor = "alice@host",
      .reason = "sender was down",
      .queue = "mailroom",
      .details = R"({"cursor_before": 51, "cursor_after": 10, "replayed": 1035, "cut": []})"};
  CHECK(line({operation.kind, {}, operation}) ==
        "1970-01-01T00:00:00Z  queue mailroom  rewound    cursor 51 to 10, 1,035 due, by alice@host: sender "
        "was down\n");
  operation.kind = feed::EventKind::pruned;
  operation.queue.clear();
  operation.reason.clear();
  operation.details = R"({"tokens": 1200, "batches": 3, "older_than": "30d", "skipped": 0})";
  CHECK(line({operation.kind, {}, operation})
            .find("database    pruned     1,200 tokens and 3 batch records, by alice@host") !=
        std::string::npos);
  operation.details = R"({"tokens": 1200, "batches": 3, "deliveries": 5})";
  CHECK(line({operation.kind, {}, operation})
            .find("1,200 tokens, 3 batch records and 5 delivery records, by") != std::string::npos);
  operation.details = R"({"tokens": 1200, "messages": 7, "batches": 3, "deliveries": 5})";
  CHECK(line({operation.kind, {}, operation})
            .find("1,200 tokens, 7 messages, 3 batch records and 5 delivery records, by") !=
        std::string::npos);
}

TEST_CASE("JSON has every field of its kind of event, and a batch's ids one by one") {
  const auto of_token = parse_json(cmd::render_json(created(token())));
  CHECK(of_token.at("token") == 51);
  CHECK(of_token.at("expires_at") == "1970-01-01T00:00:00Z");
  CHECK_FALSE(of_token.contains("batch"));
  const auto of_batch = parse_json(cmd::render_json(emitted(batch())));
  CHECK(of_batch.at("tokens") == nlohmann::json({41, 42, 43, 44, 45, 47}));
  CHECK(of_batch.at("skipped").at("expired") == 1);
  CHECK_FALSE(of_batch.contains("matches"));
  auto odd = token();
  odd.account.login = "caf\xe9";
  CHECK(parse_json(cmd::render_json(created(odd))).at("login") == "caf\xEF\xBF\xBD");
}

}  // namespace mailroom::test::event_text_test
