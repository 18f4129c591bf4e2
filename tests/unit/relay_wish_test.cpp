#include "smtp/relay_wish.hpp"

#include "support/catch.hpp"

namespace mailroom::test::relay_wish_test {
namespace {

using enum RelayWish;

struct WishRow {
  SmtpStep step;
  int code;
  std::string text;
  RelayWish wish;
};

constexpr auto at_mail = SmtpStep::mail;
constexpr auto at_rcpt = SmtpStep::rcpt;
constexpr auto at_end = SmtpStep::end;

void check(const std::vector<WishRow>& rows) {
  for (const auto& row : rows) {
    INFO(static_cast<int>(row.step) << " " << row.code << " " << row.text);
    CHECK(static_cast<int>(relay_wish(row.step, row.code, row.text, {})) == static_cast<int>(row.wish));
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
  });
}

TEST_CASE("a temporary reply that is about something else is no wish for a lower rate") {
  check({
      {at_rcpt, 454, "4.7.1 <user@mail.example>: Relay access denied", none},
      {at_mail, 454, "4.7.1 Relay access denied", none},
      {SmtpStep::starttls, 454, "4.7.0 TLS not available due to a temporary rate limit", none},
      {SmtpStep::auth, 454, "4.7.0 too many attempts", none},
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

TEST_CASE("configured texts ask for a lower rate, wherever they are") {
  const std::vector<std::string> patterns{"421 4.7.28", "Policy X", ""};
  CHECK(relay_wish(at_rcpt, 421, "4.7.28 unusual", patterns) == lower_rate);
  CHECK(relay_wish(at_rcpt, 450, "4.2.1 policy x of the mailbox", patterns) == lower_rate);
  CHECK(relay_wish(SmtpStep::connect, 421, "4.7.28 later", patterns) == lower_rate);
  CHECK(relay_wish(at_rcpt, 450, "4.7.1 grey", patterns) == none);
  CHECK(relay_wish(at_rcpt, 0, "policy x", patterns) == none);
}

}  // namespace mailroom::test::relay_wish_test
