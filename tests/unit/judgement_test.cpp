#include "carriers/smtp/refusal/judgement.hpp"

#include <random>
#include <vector>

#include "support/catch.hpp"

namespace mailroom::test::judgement_test {

using enum delivery::Verdict;

namespace {

smtp::SmtpExchange replied(smtp::SmtpStep step, int code, bool reused = false) {
  return {.step = step, .code = code, .stop = smtp::SmtpStop::none, .reused = reused};
}

smtp::SmtpExchange silent(smtp::SmtpStep step, smtp::SmtpStop stop, bool reused = false, int code = 0) {
  return {.step = step, .code = code, .stop = stop, .reused = reused};
}

struct JudgementRow {
  smtp::SmtpExchange exchange;
  smtp::MailJudgement judgement;
};

void check(const std::vector<JudgementRow>& rows) {
  for (const auto& [exchange, judgement] : rows) {
    INFO("step " << static_cast<int>(exchange.step) << ", code " << exchange.code << ", stop "
                 << static_cast<int>(exchange.stop) << ", reused " << exchange.reused);
    const auto found = smtp::judge(exchange);
    CHECK(static_cast<int>(found.verdict) == static_cast<int>(judgement.verdict));
    CHECK(found.counts == judgement.counts);
    CHECK(found.again == judgement.again);
  }
}

constexpr smtp::SmtpStep steps[] = {smtp::SmtpStep::connect, smtp::SmtpStep::hello, smtp::SmtpStep::starttls,
                                    smtp::SmtpStep::auth,    smtp::SmtpStep::mail,  smtp::SmtpStep::rcpt,
                                    smtp::SmtpStep::data,    smtp::SmtpStep::body,  smtp::SmtpStep::end};

}  // namespace

TEST_CASE("whatever happens before MAIL says nothing about the mail") {
  for (const auto step :
       {smtp::SmtpStep::connect, smtp::SmtpStep::hello, smtp::SmtpStep::starttls, smtp::SmtpStep::auth}) {
    for (const int code : {0, 220, 421, 454, 535, 554})
      check({{silent(step, smtp::SmtpStop::lost, false, code), {unavailable, false, false}}});
    check({{silent(step, smtp::SmtpStop::timed_out), {unavailable, false, false}},
           {silent(step, smtp::SmtpStop::interrupted), {deferred, false, false}}});
  }
  // A kept connection has gone before MAIL could be sent over it.
  check({{silent(smtp::SmtpStep::connect, smtp::SmtpStop::lost, true), {unavailable, false, true}},
         {silent(smtp::SmtpStep::connect, smtp::SmtpStop::interrupted, true), {deferred, false, false}}});
}

TEST_CASE("a reply from MAIL on decides") {
  check({
      {replied(smtp::SmtpStep::mail, 450), {unavailable, false, false}},
      {replied(smtp::SmtpStep::mail, 451), {unavailable, false, false}},
      {replied(smtp::SmtpStep::mail, 452), {unavailable, false, false}},
      {replied(smtp::SmtpStep::mail, 550), {unavailable, false, false}},
      {replied(smtp::SmtpStep::mail, 421), {unavailable, false, false}},
      {replied(smtp::SmtpStep::mail, 421, true), {deferred, false, true}},
      {replied(smtp::SmtpStep::mail, 450, true), {deferred, false, true}},
      {replied(smtp::SmtpStep::mail, 550, true), {deferred, false, true}},
      {replied(smtp::SmtpStep::rcpt, 550, true), {rejected, true, false}},
      {replied(smtp::SmtpStep::mail, 530), {unavailable, false, false}},
      {replied(smtp::SmtpStep::mail, 530, true), {deferred, false, true}},
      {replied(smtp::SmtpStep::mail, 535), {unavailable, false, false}},
      {replied(smtp::SmtpStep::mail, 538), {unavailable, false, false}},
      {replied(smtp::SmtpStep::rcpt, 421), {deferred, true, false}},
      {replied(smtp::SmtpStep::rcpt, 421, true), {deferred, false, true}},
      {replied(smtp::SmtpStep::rcpt, 530), {rejected, true, false}},
      {replied(smtp::SmtpStep::rcpt, 450), {deferred, true, false}},
      {replied(smtp::SmtpStep::rcpt, 550), {rejected, true, false}},
      {replied(smtp::SmtpStep::data, 451), {deferred, true, false}},
      {replied(smtp::SmtpStep::data, 554), {rejected, true, false}},
      {replied(smtp::SmtpStep::end, 250), {accepted, true, false}},
      {replied(smtp::SmtpStep::end, 251), {accepted, true, false}},
      {replied(smtp::SmtpStep::end, 451), {deferred, true, false}},
      {replied(smtp::SmtpStep::end, 421), {deferred, true, false}},
      {replied(smtp::SmtpStep::end, 421, true), {deferred, false, true}},
      {replied(smtp::SmtpStep::end, 552), {rejected, true, false}},
  });
}

TEST_CASE("what a refusal is about decides whose fault it is") {
  const auto about = [](smtp::SmtpStep step, int code, delivery::RefusalSubject subject) {
    auto exchange = replied(step, code);
    exchange.about = subject;
    return exchange;
  };
  for (const auto step : {smtp::SmtpStep::rcpt, smtp::SmtpStep::data, smtp::SmtpStep::end}) {
    for (const int code : {450, 550}) {
      const auto own = code == 550 ? rejected : deferred;
      check({{about(step, code, delivery::RefusalSubject::everyone), {unavailable, false, false}},
             {about(step, code, delivery::RefusalSubject::recipient), {own, true, false}},
             {about(step, code, delivery::RefusalSubject::unclear), {own, true, false}}});
    }
  }
  // A relay that refuses SMTPUTF8 in MAIL refuses the recipient's address.
  auto own_command = replied(smtp::SmtpStep::mail, 553);
  own_command.is_own_mail_command = true;
  check({{own_command, {rejected, true, false}}});
}

TEST_CASE("a reply that nobody awaits decides nothing about the mail's end") {
  check({{replied(smtp::SmtpStep::data, 250), {deferred, true, false}},
         {replied(smtp::SmtpStep::rcpt, 354), {deferred, true, false}},
         {silent(smtp::SmtpStep::rcpt, smtp::SmtpStop::lost, false, 150), {deferred, true, false}},
         {replied(smtp::SmtpStep::mail, 354), {unavailable, false, false}},
         {replied(smtp::SmtpStep::end, 350), {unknown, true, false}}});
}

TEST_CASE("a reply counts even if the connection was lost or interrupted after it") {
  check({
      {silent(smtp::SmtpStep::end, smtp::SmtpStop::lost, false, 250), {accepted, true, false}},
      {silent(smtp::SmtpStep::end, smtp::SmtpStop::interrupted, false, 250), {accepted, true, false}},
      {silent(smtp::SmtpStep::end, smtp::SmtpStop::interrupted, false, 554), {rejected, true, false}},
      {silent(smtp::SmtpStep::rcpt, smtp::SmtpStop::interrupted, true, 550), {rejected, true, false}},
  });
}

TEST_CASE("without a reply it depends on how much was sent") {
  check({
      {silent(smtp::SmtpStep::mail, smtp::SmtpStop::lost), {unavailable, false, true}},
      {silent(smtp::SmtpStep::mail, smtp::SmtpStop::timed_out), {unavailable, false, false}},
      {silent(smtp::SmtpStep::mail, smtp::SmtpStop::timed_out, true), {unavailable, false, true}},
      {silent(smtp::SmtpStep::rcpt, smtp::SmtpStop::lost), {deferred, false, true}},
      {silent(smtp::SmtpStep::rcpt, smtp::SmtpStop::timed_out), {deferred, false, false}},
      {silent(smtp::SmtpStep::data, smtp::SmtpStop::lost), {deferred, false, true}},
      {silent(smtp::SmtpStep::data, smtp::SmtpStop::lost, false, 354), {deferred, false, true}},
      {silent(smtp::SmtpStep::data, smtp::SmtpStop::interrupted, true), {deferred, false, false}},
      {silent(smtp::SmtpStep::body, smtp::SmtpStop::lost), {deferred, true, false}},
      {silent(smtp::SmtpStep::body, smtp::SmtpStop::timed_out, true), {deferred, true, false}},
      {silent(smtp::SmtpStep::body, smtp::SmtpStop::interrupted), {deferred, false, false}},
      {silent(smtp::SmtpStep::end, smtp::SmtpStop::lost), {unknown, true, false}},
      {silent(smtp::SmtpStep::end, smtp::SmtpStop::timed_out, true), {unknown, true, false}},
      {silent(smtp::SmtpStep::end, smtp::SmtpStop::interrupted), {unknown, true, false}},
      {silent(smtp::SmtpStep::end, smtp::SmtpStop::lost, false, 354), {unknown, true, false}},
      {silent(smtp::SmtpStep::end, smtp::SmtpStop::lost, false, 150), {unknown, true, false}},
      {silent(smtp::SmtpStep::mail, smtp::SmtpStop::no_auth, false, 250), {unavailable, false, false}},
      {silent(smtp::SmtpStep::mail, smtp::SmtpStop::no_smtputf8, true, 250), {rejected, true, false}},
      {silent(smtp::SmtpStep::mail, smtp::SmtpStop::no_8bitmime, true, 250), {rejected, true, false}},
      {silent(smtp::SmtpStep::hello, smtp::SmtpStop::no_sender_smtputf8, false, 250),
       {unavailable, false, false}},
      {silent(smtp::SmtpStep::hello, smtp::SmtpStop::no_login, false, 250), {unavailable, false, false}},
  });
}

TEST_CASE("no exchange breaks a promise") {
  std::mt19937 random(815);
  int accepted_ones = 0;
  for (int i = 0; i < 100'000; ++i) {
    const smtp::SmtpExchange exchange{.step = steps[random() % std::size(steps)],
                                      .code = random() % 3 == 0 ? 0 : static_cast<int>(random() % 600),
                                      .stop = static_cast<smtp::SmtpStop>(random() % 4),
                                      .reused = random() % 2 == 0};
    const auto [outcome, counts, again] = smtp::judge(exchange);
    const bool may_have_it = exchange.step == smtp::SmtpStep::end;
    accepted_ones += outcome == accepted ? 1 : 0;
    // Only the reply to the end of a message accepts it, and only a mail that the relay cannot have is sent
    // again.
    if (outcome == accepted) REQUIRE((may_have_it && exchange.code / 100 == 2));
    const bool is_refused = exchange.code >= 400 && smtp::is_definite(exchange.code);
    if (again) REQUIRE((!counts && (is_refused || (!may_have_it && exchange.step != smtp::SmtpStep::body))));
    if (may_have_it && !smtp::is_definite(exchange.code)) REQUIRE(outcome == unknown);
    if (outcome == unknown) REQUIRE((may_have_it && counts));
    // Only a reply of the relay rejects a mail.
    if (outcome == rejected) REQUIRE((exchange.code >= 500 && exchange.step >= smtp::SmtpStep::mail));
    if (outcome == unavailable) REQUIRE((!counts && exchange.step <= smtp::SmtpStep::mail));
  }
  CHECK(accepted_ones > 100);
}

TEST_CASE("a missing reply is explained") {
  const Milliseconds limit{90'000};
  CHECK(smtp::missing_reply_text(silent(smtp::SmtpStep::rcpt, smtp::SmtpStop::timed_out), limit) ==
        "no reply to RCPT within 1m30s");
  CHECK(smtp::missing_reply_text(silent(smtp::SmtpStep::end, smtp::SmtpStop::lost), limit) ==
        "connection lost after the end of the message");
  CHECK(smtp::missing_reply_text(silent(smtp::SmtpStep::connect, smtp::SmtpStop::lost), limit) ==
        "the relay closed the connection before its greeting");
  CHECK(smtp::missing_reply_text(silent(smtp::SmtpStep::connect, smtp::SmtpStop::interrupted), limit) ==
        "stopped before the relay answered the connection");
}

}  // namespace mailroom::test::judgement_test
