// The outcome of one mail, for each answer at each step of the dialogue.

#include "carriers/smtp/session/session.hpp"
#include "support/catch.hpp"
#include "support/refusing_port.hpp"
#include "support/test_mail.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test::outcome_test {
namespace {

using Then = RelayAnswer::Then;

RelayAnswer half(std::string text) {
  return {.text = std::move(text), .then = Then::close, .has_line_end = false};
}

struct OutcomeRow {
  RelayStep step;
  RelayAnswer answer;
  std::string delivery;
  int connections = 1;
  std::size_t taken = 0;
};

void check(const OutcomeRow& row, bool always, bool offers_pipelining, std::string_view message) {
  TestRelay::Options options;
  options.offers_pipelining = offers_pipelining;
  options.play = always ? TestRelay::at(row.step, row.answer) : TestRelay::once(row.step, row.answer);
  const TestRelay server(options);
  smtp::RelaySession relay(url_of(server),
                           row.answer.then == Then::hang ? impatient() : smtp::RelayOptions{});
  INFO("step " << static_cast<int>(row.step) << ", pipelining " << offers_pipelining << ", answer "
               << row.answer.text.value_or("as usual") << ", then " << static_cast<int>(row.answer.then));
  const auto delivery = relay.deliver(mail_to("user@mail.example", message));
  CHECK(text_of(delivery) == row.delivery);
  CHECK(delivery.sink == "127.0.0.1:" + std::to_string(server.port()));
  CHECK(server.connections() == row.connections);
  CHECK(server.taken().size() == row.taken);
}

/// Each outcome is the same whether the commands are sent at once or one after the other.
void check(const OutcomeRow& row, bool always, std::string_view message = test_message) {
  check(row, always, false, message);
  check(row, always, true, message);
}

const auto drop = RelayAnswer::nothing(Then::close);
const auto reset = RelayAnswer::nothing(Then::reset);
const auto hang = RelayAnswer::nothing(Then::hang);

RelayAnswer reply(std::string text, Then then = Then::go_on) {
  return RelayAnswer::reply(std::move(text), then);
}

}  // namespace

TEST_CASE("a relay that does not begin a dialogue is unavailable") {
  const std::vector<OutcomeRow> rows{
      {RelayStep::greeting, reply("421 4.3.2 closing", Then::close),
       "unavailable, not counted, 421: 4.3.2 closing"},
      {RelayStep::greeting, reply("554 go away"), "unavailable, not counted, 554: go away"},
      {RelayStep::greeting, hang,
       "unavailable, not counted, 0: connected, but no greeting within 1s; a port that speaks TLS from the first "
       "byte needs smtps://"},
      {RelayStep::ehlo, reply("502 unknown"), "unavailable, not counted, 502: unknown"},
      {RelayStep::ehlo, hang, "unavailable, not counted, 0: no reply to EHLO within 1s"},
  };
  for (const auto& row : rows)
    check(row, true);
  for (const auto& answer : {drop, reset, half("220 te")}) {
    for (const auto step : {RelayStep::greeting, RelayStep::ehlo}) {
      const TestRelay server({.play = TestRelay::at(step, answer)});
      smtp::RelaySession relay(url_of(server), {});
      const auto delivery = relay.deliver(mail_to("user@mail.example"));
      CHECK(delivery.verdict == delivery::Verdict::unavailable);
      CHECK_FALSE(delivery.counts());
      CHECK(delivery.code == 0);
      CHECK_FALSE(delivery.reply.empty());
    }
  }
}

TEST_CASE("a relay that refuses connections is unavailable") {
  const RefusingPort closed;
  smtp::RelaySession relay(smtp::parse_relay_url("smtp://127.0.0.1:" + std::to_string(closed.port())), {});
  const auto delivery = relay.deliver(mail_to("user@mail.example"));
  CHECK(delivery.verdict == delivery::Verdict::unavailable);
  CHECK_FALSE(delivery.counts());
  CHECK(delivery.reply.find("connect") != std::string::npos);
}

TEST_CASE("a reply to MAIL, RCPT, DATA or the message decides") {
  const std::vector<OutcomeRow> rows{
      {RelayStep::mail, reply("451 4.3.0 later"), "unavailable, not counted, 451: 4.3.0 later"},
      {RelayStep::mail, reply("450 4.7.1 slow down"), "deferred, not counted, 450: 4.7.1 slow down"},
      {RelayStep::mail, reply("550 5.1.8 sender"), "unavailable, not counted, 550: 5.1.8 sender"},
      {RelayStep::mail, reply("421 4.3.2 closing", Then::close),
       "unavailable, not counted, 421: 4.3.2 closing"},
      {RelayStep::mail, reply("530 5.7.0 log in first"), "unavailable, not counted, 530: 5.7.0 log in first"},
      {RelayStep::rcpt, reply("450 4.2.1 grey"), "deferred, counted, 450: 4.2.1 grey"},
      {RelayStep::rcpt, reply("550 5.1.1 no such user"), "rejected, counted, 550: 5.1.1 no such user"},
      {RelayStep::rcpt, reply("421 4.7.0 too many", Then::close),
       "deferred, not counted, 421: 4.7.0 too many"},
      {RelayStep::rcpt, reply("535 5.7.8 log in"), "unavailable, not counted, 535: 5.7.8 log in"},
      {RelayStep::rcpt, reply("504 5.5.2 <me>: Helo command rejected: need fully-qualified hostname"),
       "unavailable, not counted, 504: 5.5.2 <me>: Helo command rejected: need fully-qualified hostname"},
      {RelayStep::end, reply("550 5.4.5 Daily user sending limit exceeded"),
       "unavailable, not counted, 550: 5.4.5 Daily user sending limit exceeded"},
      {RelayStep::data, reply("250 2.0.0 what"),
       "deferred, counted, 250: unexpected reply to DATA: 2.0.0 what"},
      {RelayStep::data, reply("451 4.3.0 later"), "deferred, counted, 451: 4.3.0 later"},
      {RelayStep::data, reply("554 5.7.1 no"), "rejected, counted, 554: 5.7.1 no"},
      {RelayStep::end, reply("451 4.3.0 later"), "deferred, counted, 451: 4.3.0 later"},
      {RelayStep::end, reply("421 4.7.0 slow down", Then::close),
       "deferred, not counted, 421: 4.7.0 slow down"},
      {RelayStep::end, reply("552 5.3.4 too big"), "rejected, counted, 552: 5.3.4 too big"},
      {RelayStep::end, reply("421 4.3.2 closing", Then::close), "deferred, counted, 421: 4.3.2 closing"},
      {RelayStep::end, reply("432 4.3.2 too many at once"),
       "deferred, not counted, 432: 4.3.2 too many at once"},
      {RelayStep::end, reply("454 4.7.0 later"), "deferred, not counted, 454: 4.7.0 later"},
      {RelayStep::rcpt, reply("454 4.7.1 Relay access denied"),
       "deferred, counted, 454: 4.7.1 Relay access denied"},
      {RelayStep::rcpt, reply("550-5.1.1 no\r\n550-5.1.1 such\r\n550 5.1.1 user"),
       "rejected, counted, 550: 5.1.1 no 5.1.1 such 5.1.1 user"},
  };
  for (const auto& row : rows)
    check(row, true);
}

TEST_CASE("a strange reply to the end of the message is recorded in the relay's words") {
  check({RelayStep::end, reply("350 more"),
         "unknown, counted, 350: unexpected reply to the end of the message: more", 1, 1},
        true);
  check({RelayStep::end, reply("250\tok"), "accepted, counted, 250: ok", 1, 1}, true);
  check({RelayStep::end, reply("250 " + std::string(200'000, 'x')),
         "accepted, counted, 250: " + std::string(200, 'x'), 1, 1},
        true);
}

TEST_CASE("an accepted mail has the relay's queue id") {
  check({RelayStep::end, {}, "accepted, counted, 250: 2.0.0 ok: queued as Q1-1", 1, 1}, true);
  check({RelayStep::end, reply("250-2.0.0 thank you\r\n250 2.0.0 queued as ABC"),
         "accepted, counted, 250: 2.0.0 queued as ABC", 1, 1},
        true);
}

TEST_CASE("a connection that is lost before the message is replaced once") {
  for (const auto step : {RelayStep::mail, RelayStep::rcpt, RelayStep::data}) {
    for (const auto& answer : {drop, reset, half("250 2.1")}) {
      check({step, answer, "accepted, counted, 250: 2.0.0 ok: queued as Q2-1", 2, 1}, false);
    }
  }
  check({RelayStep::mail, drop, "unavailable, not counted, 0: connection lost after MAIL", 2}, true);
  check({RelayStep::rcpt, reset, "deferred, not counted, 0: connection lost after RCPT", 2}, true);
  check({RelayStep::data, half("354 g"), "deferred, not counted, 0: connection lost after DATA", 2}, true);
}

TEST_CASE("a relay that sends a line without end is given up when it is late") {
  check({RelayStep::mail,
         {.text = "250 " + std::string(100'000, 'x'), .then = Then::hang, .has_line_end = false},
         "unavailable, not counted, 0: no reply to MAIL within 1s"},
        true);
}

TEST_CASE("a relay that is slow before the message is not tried again at once") {
  check({RelayStep::mail, hang, "unavailable, not counted, 0: no reply to MAIL within 1s"}, true);
  check({RelayStep::rcpt, hang, "deferred, not counted, 0: no reply to RCPT within 1s"}, true);
  check({RelayStep::data, hang, "deferred, not counted, 0: no reply to DATA within 1s"}, true);
}

TEST_CASE("a mail that is lost within the message is deferred") {
  std::string message = "Subject: large\r\n\r\n";
  while (message.size() < 16'000'000)
    message += "a line of text, which is repeated until no socket can buffer the whole message\r\n";
  check({RelayStep::body, drop, "deferred, counted, 0: connection lost after a part of the message"}, true,
        message);
}

TEST_CASE("a mail whose end was sent and not answered is unknown") {
  const std::string lost = "unknown, counted, 0: connection lost after the end of the message";
  const std::vector<OutcomeRow> rows{
      {RelayStep::end, drop, lost, 1, 1},
      {RelayStep::end, reset, lost, 1, 1},
      {RelayStep::end, half("250 2.0.0 ok: que"), lost, 1, 1},
      {RelayStep::end, reply("199 what"),
       "unknown, counted, 199: unexpected reply to the end of the message: what", 1, 1},
      {RelayStep::end, hang, "unknown, counted, 0: no reply to the end of the message within 1s", 1, 1},
  };
  for (const auto& row : rows)
    check(row, true);
}

TEST_CASE("a long reply with control characters is recorded in short and printable form") {
  const auto text = std::string("550 5.1.1 \x1b[31mred\x01 ") + std::string(10'000, 'x');
  const TestRelay server({.play = TestRelay::at(RelayStep::rcpt, reply(text))});
  smtp::RelaySession relay(url_of(server), {});
  const auto delivery = relay.deliver(mail_to("user@mail.example"));
  CHECK(delivery.verdict == delivery::Verdict::rejected);
  CHECK(delivery.code == 550);
  CHECK(delivery.reply.size() == 200);
  CHECK(delivery.reply.starts_with("5.1.1 ?[31mred? xxx"));
}

TEST_CASE("a reply can name a time and ask for a lower rate") {
  smtp::RelayOptions options;
  options.throttled_by = {"450 4.7.1 Too Fast"};
  std::string answer = "454 4.7.0 Throttling failure: try again in 60 seconds";
  const TestRelay server({.play = [&](const RelayMoment& moment) {
    return moment.step == RelayStep::rcpt ? reply(answer) : RelayAnswer{};
  }});
  smtp::RelaySession relay(url_of(server), options);
  auto delivery = relay.deliver(mail_to("user@mail.example"));
  CHECK(delivery.verdict == delivery::Verdict::deferred);
  CHECK(delivery.wait == std::chrono::seconds(60));
  CHECK(delivery.throttled);
  answer = "450 4.7.1 too fast";
  delivery = relay.deliver(mail_to("user@mail.example"));
  CHECK_FALSE(delivery.wait.has_value());
  CHECK(delivery.throttled);
  answer = "450 4.7.1 grey";
  CHECK_FALSE(relay.deliver(mail_to("user@mail.example")).throttled);
}

}  // namespace mailroom::test::outcome_test
