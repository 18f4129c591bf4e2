#include "smtp/dialogue.hpp"

#include <array>
#include <string>

#include "support/catch.hpp"

using namespace mailroom;

namespace {

constexpr TimePoint start{std::chrono::hours(1)};
constexpr Milliseconds timeout{30'000};

Dialogue new_dialogue(bool wants_auth = false) {
  return Dialogue({.timeout = timeout, .at_end = Milliseconds(120'000), .wants_auth = wants_auth});
}

void open_connection(Dialogue& dialogue, TimePoint now = start) {
  dialogue.connecting(now);
  dialogue.received("220 relay\r\n");
  dialogue.sent("EHLO me\r\n", now);
  dialogue.received("250-relay\r\n");
  dialogue.received("250 SMTPUTF8\r\n");
}

SmtpStep step_of(const Dialogue& dialogue) {
  return dialogue.exchange().step;
}

}  // namespace

TEST_CASE("a dialogue follows one mail to its end") {
  auto dialogue = new_dialogue();
  dialogue.begin("message", false, start);
  CHECK(step_of(dialogue) == SmtpStep::connect);
  open_connection(dialogue);
  CHECK(step_of(dialogue) == SmtpStep::hello);
  dialogue.sent("MAIL FROM:<a@b>\r\n", start);
  CHECK(dialogue.received("250 ok\r\n"));
  dialogue.sent("RCPT TO:<c@d>\r\n", start);
  CHECK(dialogue.exchange().code == 0);
  CHECK(dialogue.received("250 ok\r\n"));
  dialogue.sent("DATA\r\n", start);
  CHECK(dialogue.received("354 go\r\n"));
  CHECK(dialogue.exchange().code == 354);
  std::array<char, 5> bytes{};
  CHECK(dialogue.read(bytes.data(), bytes.size(), start) == 5);
  CHECK(step_of(dialogue) == SmtpStep::body);
  CHECK(dialogue.read(bytes.data(), bytes.size(), start) == 2);
  CHECK(step_of(dialogue) == SmtpStep::body);
  CHECK(dialogue.read(bytes.data(), bytes.size(), start) == 0);
  CHECK(step_of(dialogue) == SmtpStep::end);
  CHECK(dialogue.exchange().code == 0);
  CHECK(dialogue.received("250 2.0.0 queued\r\n"));
  CHECK(dialogue.exchange().code == 250);
  CHECK(dialogue.reply().text() == "2.0.0 queued");
  dialogue.begin("message", false, start);
  CHECK(dialogue.exchange().reused);
  CHECK(dialogue.exchange().code == 0);
  dialogue.connecting(start);
  CHECK_FALSE(dialogue.exchange().reused);
}

TEST_CASE("the end of the message has its own time-out") {
  auto dialogue = new_dialogue();
  dialogue.begin("", false, start);
  open_connection(dialogue);
  dialogue.sent("MAIL FROM:<a@b>\r\n", start + timeout / 2);
  CHECK_FALSE(dialogue.is_overdue(start + timeout));
  CHECK(dialogue.exchange().stop == SmtpStop::none);
  char byte = 0;
  CHECK(dialogue.read(&byte, 1, start + timeout) == 0);
  CHECK_FALSE(dialogue.is_overdue(start + timeout + Milliseconds(119'999)));
  CHECK(dialogue.is_overdue(start + timeout + Milliseconds(120'000)));
  CHECK(dialogue.exchange().stop == SmtpStop::timed_out);
}

TEST_CASE("QUIT changes nothing about the mail") {
  auto dialogue = new_dialogue();
  dialogue.begin("", false, start);
  open_connection(dialogue);
  dialogue.sent("MAIL FROM:<a@b>\r\n", start);
  dialogue.received("550 no\r\n");
  dialogue.sent("QUIT\r\n", start);
  dialogue.received("221 bye\r\n");
  CHECK(dialogue.is_overdue(start + Milliseconds(1000)));
  CHECK(step_of(dialogue) == SmtpStep::mail);
  CHECK(dialogue.exchange().code == 550);
  CHECK(dialogue.exchange().stop == SmtpStop::none);
  CHECK(dialogue.reply().text() == "no");
}

TEST_CASE("QUIT to the connection before hides no reply of the next one") {
  auto dialogue = new_dialogue();
  dialogue.begin("", false, start);
  dialogue.connecting(start);
  dialogue.sent("QUIT\r\n", start);
  dialogue.received("221 bye\r\n");
  dialogue.sent("EHLO me\r\n", start);
  CHECK_FALSE(dialogue.is_overdue(start + Milliseconds(1000)));
  dialogue.received("502 no\r\n");
  CHECK(step_of(dialogue) == SmtpStep::hello);
  CHECK(dialogue.exchange().code == 502);
}

TEST_CASE("the answer to a challenge of AUTH is no command, whatever it looks like") {
  for (const std::string answer : {"QUIT\r\n", "DATA\r\n", "MAIL\r\n", "AGEAYg==\r\n"}) {
    auto dialogue = new_dialogue(true);
    dialogue.begin("", false, start);
    open_connection(dialogue);
    dialogue.sent("AUTH PLAIN\r\n", start);
    dialogue.received("334 \r\n");
    dialogue.sent(answer, start);
    CHECK(step_of(dialogue) == SmtpStep::auth);
    CHECK(dialogue.received("235 welcome\r\n"));
    dialogue.sent("MAIL FROM:<a@b>\r\n", start);
    CHECK(dialogue.received("250 ok\r\n"));
  }
}

TEST_CASE("a mail is given up after MAIL if the relay lacks what it needs") {
  const auto stop_of = [](bool wants_auth, bool needs_smtputf8, const std::string& offer) {
    auto dialogue = new_dialogue(wants_auth);
    dialogue.begin("", needs_smtputf8, start);
    dialogue.connecting(start);
    dialogue.received("220 relay\r\n");
    dialogue.sent("EHLO me\r\n", start);
    dialogue.received("250 " + offer + "\r\n");
    dialogue.sent("MAIL FROM:<a@b>\r\n", start);
    const bool goes_on = dialogue.received("250 ok\r\n");
    CHECK(goes_on == (dialogue.exchange().stop == SmtpStop::none));
    return dialogue.exchange().stop;
  };
  CHECK(stop_of(false, false, "8BITMIME") == SmtpStop::none);
  CHECK(stop_of(true, false, "8BITMIME") == SmtpStop::no_auth);
  CHECK(stop_of(false, true, "8BITMIME") == SmtpStop::no_smtputf8);
  CHECK(stop_of(false, true, "SMTPUTF8") == SmtpStop::none);
  CHECK(stop_of(true, true, "SMTPUTF8") == SmtpStop::no_auth);
}

TEST_CASE("what a connection offers ends with it, and with STARTTLS") {
  auto dialogue = new_dialogue();
  dialogue.begin("", true, start);
  open_connection(dialogue);
  dialogue.sent("STARTTLS\r\n", start);
  dialogue.received("220 go\r\n");
  dialogue.sent("EHLO me\r\n", start);
  dialogue.received("250 8BITMIME\r\n");
  dialogue.sent("MAIL FROM:<a@b>\r\n", start);
  CHECK_FALSE(dialogue.received("250 ok\r\n"));
}

TEST_CASE("a line without a command is not taken for a reply to the last one") {
  auto dialogue = new_dialogue();
  dialogue.begin("", false, start);
  open_connection(dialogue);
  dialogue.sent("MAIL FROM:<a@b>\r\n", start);
  CHECK(dialogue.received("250 ok\r\n"));
  CHECK(dialogue.received("550 what\r\n"));
  CHECK(dialogue.exchange().code == 250);
  CHECK(dialogue.received(""));
  CHECK(dialogue.received("x"));
}
