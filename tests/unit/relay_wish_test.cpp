#include "carriers/smtp/refusal/relay_wish.hpp"

#include "carriers/smtp/refusal/refusal_subject.hpp"
#include "support/catch.hpp"

namespace mailroom::test::relay_wish_test {
namespace {

using enum smtp::RelayWish;

struct WishRow {
  smtp::SmtpStep step;
  int code;
  std::string text;
  smtp::RelayWish wish;
};

constexpr auto at_mail = smtp::SmtpStep::mail;
constexpr auto at_rcpt = smtp::SmtpStep::rcpt;
constexpr auto at_end = smtp::SmtpStep::end;

void check(const std::vector<WishRow>& rows) {
  for (const auto& row : rows) {
    INFO(static_cast<int>(row.step) << " " << row.code << " " << row.text);
    CHECK(static_cast<int>(
              smtp::relay_wish(row.step, row.code, smtp::own_words(row.text, "user@mail.example"))) ==
          static_cast<int>(row.wish));
  }
}

}  // namespace

TEST_CASE("a relay asks for a lower rate by 454 to a message, or in words") {
  check({
      {at_end, 454, "Throttling failure: Maximum sending rate exceeded.", lower_rate},
      {at_end, 454, "4.7.0 later", lower_rate},
      {at_rcpt, 454, "4.7.0 too many mails", lower_rate},
      {at_mail, 450, "4.7.1 slow down", lower_rate},
      {at_rcpt, 451, "4.7.1 sender rate limit", lower_rate},
      {at_mail, 450, "4.7.1 Error: too much mail from 192.0.2.1", lower_rate},
      {at_rcpt, 450, "4.7.1 Error: too many recipients from 192.0.2.1", lower_rate},
      {at_end, 421, "4.7.28 our system has detected an unusual rate of mail", lower_rate},
      {at_end, 452, "4.3.1 Quota Exceeded", lower_rate},
      {at_end, 450, "4.7.0 Policy: sending limit reached for now", lower_rate},
      {at_mail, 451, "4.7.500 Server busy. Please try again later from [192.0.2.1].", lower_rate},
  });
}

TEST_CASE("a temporary reply that is about something else is no wish for a lower rate") {
  check({
      {at_rcpt, 454, "4.7.1 <user@mail.example>: Relay access denied", none},
      {at_mail, 454, "4.7.1 Relay access denied", none},
      {smtp::SmtpStep::starttls, 454, "4.7.0 TLS not available due to a temporary rate limit", none},
      {smtp::SmtpStep::auth, 454, "4.7.0 too many attempts", none},
      {at_rcpt, 450, "4.2.1 mailbox busy", none},
      {at_rcpt, 450,
       "4.2.1 The user you are trying to contact is receiving mail at a rate that prevents more", none},
      {at_rcpt, 452, "4.2.2 mailbox full, quota exceeded", none},
      {at_rcpt, 452, "4.5.3 too many recipients", none},
      {at_rcpt, 450, "4.7.1 Greylisted, try again in 60 seconds", none},
      {at_end, 451, "4.3.0 separate queue", none},
      {at_end, 452, "4.3.1 storage exceeded", none},
      {at_mail, 421, "4.4.2 Error: timeout exceeded", none},
      {at_mail, 421, "4.7.0 Error: too many errors", none},
      {at_end, 550, "5.4.5 daily sending rate exceeded", none},
      {at_end, 0, "connection lost, too many hops exceeded the rate", none},
  });
}

TEST_CASE("a relay asks for fewer mails at once") {
  check({
      {at_end, 432, "4.3.2 Concurrent connections limit exceeded", fewer_at_once},
      {at_mail, 432, "4.3.2 STOREDRV.ClientSubmit; sender thread limit", fewer_at_once},
      {at_mail, 421, "4.7.0 Error: too many connections from 192.0.2.1", fewer_at_once},
      {at_rcpt, 451, "4.3.2 too many concurrent deliveries", fewer_at_once},
      {at_mail, 421, "4.7.0 too many messages in this session", lower_rate},
      {at_mail, 421, "4.4.1 connection timed out, limit exceeded", none},
  });
}

TEST_CASE("before MAIL a relay can ask for fewer connections only") {
  check({
      {smtp::SmtpStep::connect, 421, "4.7.0 too many connections", fewer_at_once},
      {smtp::SmtpStep::hello, 421, "4.7.0 192.0.2.1 too many concurrent SMTP connections", fewer_at_once},
      {smtp::SmtpStep::auth, 432, "4.3.2 Concurrent connections limit exceeded", fewer_at_once},
      {smtp::SmtpStep::connect, 421, "4.3.2 Service not available", none},
      {smtp::SmtpStep::connect, 421, "4.7.0 too many mails, slow down", none},
      {smtp::SmtpStep::connect, 554, "5.7.1 too many connections", none},
  });
}

TEST_CASE("a permanent refusal that names a rate asks for a lower one") {
  check({
      {at_end, 550, "5.7.0 Requested action not taken: too many emails per second", lower_rate},
      {at_rcpt, 554, "Rate limit: 30 messages per minute", lower_rate},
      {at_end, 550, "exceeded the emails per hour", none},
      {smtp::SmtpStep::connect, 554, "too many emails per second", none},
  });
}

TEST_CASE("neither the recipient nor its server chooses the words of a wish") {
  check({
      {at_rcpt, 450, "4.7.1 <slow down@mail.example> later", none},
      {at_rcpt, 451, "4.7.1 response to \"RCPT TO:<u@mail.example>\" was: 451 too many concurrent sessions",
       none},
      {at_rcpt, 450, "Callout verification failed: 421 4.7.0 Too many concurrent SMTP connections", none},
      {at_rcpt, 450, "unverified address: host mx.mail.example said: 450 slow down", none},
  });
}

TEST_CASE("configured texts ask for a lower rate, wherever they are") {
  const std::vector<std::string> patterns{"421 4.7.28", "Policy X", ""};
  CHECK(smtp::is_configured_wish(421, "4.7.28 unusual", patterns));
  CHECK(smtp::is_configured_wish(450, "4.2.1 policy x of the mailbox", patterns));
  CHECK(smtp::is_configured_wish(550, "5.2.1 policy x", patterns));
  CHECK_FALSE(smtp::is_configured_wish(450, "4.7.1 grey", patterns));
  CHECK_FALSE(smtp::is_configured_wish(0, "policy x", patterns));
}

}  // namespace mailroom::test::relay_wish_test
