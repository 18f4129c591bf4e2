#include "carriers/smtp/dialogue/dialogue.hpp"

#include <string>

#include "support/catch.hpp"

namespace mailroom::test::dialogue_test {
namespace {

constexpr TimePoint start{std::chrono::hours(1)};
constexpr Milliseconds timeout{30'000};

smtp::Dialogue new_dialogue(bool wants_auth = false) {
  return smtp::Dialogue({.timeout = timeout, .at_end = Milliseconds(120'000), .wants_auth = wants_auth});
}

void open_connection(smtp::Dialogue& dialogue, TimePoint now = start) {
  dialogue.connecting(now);
  dialogue.received("220 relay\r\n");
  dialogue.sent("EHLO me\r\n", now);
  dialogue.received("250-relay\r\n");
  dialogue.received("250-PIPELINING\r\n");
  dialogue.received("250 SMTPUTF8\r\n");
}

smtp::SmtpStep step_of(const smtp::Dialogue& dialogue) {
  return dialogue.exchange().step;
}

}  // namespace

TEST_CASE("a refusal of EHLO stands until HELO is answered") {
  auto dialogue = new_dialogue();
  dialogue.begin(start);
  dialogue.connecting(start);
  dialogue.received("220 relay\r\n");
  dialogue.sent("EHLO me\r\n", start);
  dialogue.received("421 4.7.0 busy\r\n");
  dialogue.sent("HELO me\r\n", start);
  CHECK(dialogue.exchange().code == 421);
  CHECK(dialogue.reply().text() == "4.7.0 busy");
  dialogue.received("250 relay\r\n");
  CHECK(dialogue.exchange().code == 250);
  CHECK(dialogue.reply().text() == "relay");
}

TEST_CASE("a dialogue follows one mail to its end") {
  auto dialogue = new_dialogue();
  dialogue.begin(start);
  CHECK(step_of(dialogue) == smtp::SmtpStep::connect);
  open_connection(dialogue);
  CHECK(step_of(dialogue) == smtp::SmtpStep::hello);
  dialogue.sent("MAIL FROM:<a@b>\r\n", start);
  dialogue.received("250 ok\r\n");
  dialogue.sent("RCPT TO:<c@d>\r\n", start);
  CHECK(dialogue.exchange().code == 0);
  dialogue.received("250 ok\r\n");
  dialogue.sent("DATA\r\n", start);
  dialogue.received("354 go\r\n");
  CHECK(dialogue.exchange().code == 354);
  dialogue.message_began(start);
  CHECK(step_of(dialogue) == smtp::SmtpStep::body);
  CHECK(dialogue.exchange().code == 0);
  dialogue.message_ended(start);
  CHECK(step_of(dialogue) == smtp::SmtpStep::end);
  CHECK(dialogue.exchange().code == 0);
  dialogue.received("250 2.0.0 queued\r\n");
  CHECK(dialogue.exchange().code == 250);
  CHECK(dialogue.reply().text() == "2.0.0 queued");
  dialogue.begin(start);
  CHECK(dialogue.exchange().reused);
  CHECK(dialogue.exchange().code == 0);
  dialogue.connecting(start);
  CHECK_FALSE(dialogue.exchange().reused);
}

TEST_CASE("the end of the message has its own time-out") {
  auto dialogue = new_dialogue();
  dialogue.begin(start);
  open_connection(dialogue);
  dialogue.sent("MAIL FROM:<a@b>\r\n", start + timeout / 2);
  CHECK_FALSE(dialogue.is_overdue(start + timeout));
  CHECK(dialogue.exchange().stop == smtp::SmtpStop::none);
  dialogue.message_ended(start + timeout);
  CHECK_FALSE(dialogue.is_overdue(start + timeout + Milliseconds(119'999)));
  CHECK(dialogue.is_overdue(start + timeout + Milliseconds(120'000)));
  CHECK(dialogue.exchange().stop == smtp::SmtpStop::timed_out);
}

TEST_CASE("a message that is being taken is not overdue") {
  auto dialogue = new_dialogue();
  dialogue.begin(start);
  dialogue.message_began(start);
  dialogue.sending(start + timeout / 2);
  CHECK_FALSE(dialogue.is_overdue(start + timeout));
  CHECK(dialogue.overdue_at() == start + timeout / 2 + timeout);
  CHECK(dialogue.is_overdue(dialogue.overdue_at()));
}

TEST_CASE("the answer to a challenge of AUTH is no command, whatever it looks like") {
  for (const std::string answer : {"QUIT\r\n", "DATA\r\n", "MAIL\r\n", "AGEAYg==\r\n"}) {
    auto dialogue = new_dialogue(true);
    dialogue.begin(start);
    open_connection(dialogue);
    dialogue.sent("AUTH PLAIN\r\n", start);
    dialogue.received("334 \r\n");
    dialogue.sent(answer, start);
    CHECK(step_of(dialogue) == smtp::SmtpStep::auth);
    dialogue.received("235 welcome\r\n");
    CHECK(dialogue.is_fit_for({}));
  }
}

TEST_CASE("a connection that lacks what a mail needs is not fit for it") {
  const auto stop_of = [](bool wants_auth, const smtp::Dialogue::Needs& needs, const std::string& offer) {
    auto dialogue = new_dialogue(wants_auth);
    dialogue.begin(start);
    dialogue.connecting(start);
    dialogue.received("220 relay\r\n");
    dialogue.sent("EHLO me\r\n", start);
    dialogue.received("250 " + offer + "\r\n");
    const bool is_fit = dialogue.is_fit_for(needs);
    CHECK(is_fit == (dialogue.exchange().stop == smtp::SmtpStop::none));
    return dialogue.exchange().stop;
  };
  CHECK(stop_of(false, {}, "8BITMIME") == smtp::SmtpStop::none);
  CHECK(stop_of(true, {}, "8BITMIME") == smtp::SmtpStop::no_auth);
  CHECK(stop_of(false, {.smtputf8 = true}, "8BITMIME") == smtp::SmtpStop::no_smtputf8);
  CHECK(stop_of(false, {.smtputf8 = true, .for_sender = true}, "8BITMIME") ==
        smtp::SmtpStop::no_sender_smtputf8);
  CHECK(stop_of(false, {.smtputf8 = true}, "SMTPUTF8") == smtp::SmtpStop::none);
  CHECK(stop_of(true, {.smtputf8 = true}, "SMTPUTF8") == smtp::SmtpStop::no_auth);
  CHECK(stop_of(false, {.bits_8 = true}, "8bitmime") == smtp::SmtpStop::none);
  CHECK(stop_of(false, {.bits_8 = true}, "SMTPUTF8") == smtp::SmtpStop::no_8bitmime);
}

TEST_CASE("what a connection offers ends with it, and with STARTTLS") {
  auto dialogue = new_dialogue();
  dialogue.begin(start);
  open_connection(dialogue);
  CHECK(dialogue.offers_pipelining());
  dialogue.sent("STARTTLS\r\n", start);
  dialogue.received("220 go\r\n");
  dialogue.sent("EHLO me\r\n", start);
  dialogue.received("250 8BITMIME\r\n");
  CHECK_FALSE(dialogue.offers_pipelining());
  CHECK_FALSE(dialogue.is_fit_for({.smtputf8 = true}));
  dialogue.begin(start);
  open_connection(dialogue);
  CHECK(dialogue.is_fit_for({.smtputf8 = true}));
  dialogue.connecting(start);
  CHECK_FALSE(dialogue.offers_pipelining());
  CHECK_FALSE(dialogue.is_fit_for({.smtputf8 = true}));
}

TEST_CASE("an offer is a whole word of a reply to EHLO, in upper or lower case") {
  const auto offers_pipelining = [](const std::string& line) {
    auto dialogue = new_dialogue();
    dialogue.begin(start);
    dialogue.connecting(start);
    dialogue.sent("EHLO me\r\n", start);
    dialogue.received("250-relay\r\n");
    dialogue.received(line);
    return dialogue.offers_pipelining();
  };
  CHECK(offers_pipelining("250 PIPELINING\r\n"));
  CHECK(offers_pipelining("250-Pipelining\n"));
  CHECK_FALSE(offers_pipelining("250 PIPELININGS\r\n"));
  CHECK_FALSE(offers_pipelining("250 X PIPELINING\r\n"));
  CHECK_FALSE(offers_pipelining("250 \r\n"));
}

TEST_CASE("a line without a command is not taken for a reply to the last one") {
  auto dialogue = new_dialogue();
  dialogue.begin(start);
  open_connection(dialogue);
  dialogue.received("250 PIPELINING\r\n");
  dialogue.sent("MAIL FROM:<a@b>\r\n", start);
  dialogue.received("250 ok\r\n");
  dialogue.received("550 what\r\n");
  dialogue.received("");
  dialogue.received("x");
  CHECK(dialogue.exchange().code == 250);
  CHECK(dialogue.reply().text() == "ok");
}

}  // namespace mailroom::test::dialogue_test
