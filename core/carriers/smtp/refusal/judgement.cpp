// The cases of the table in docs/smtp.md: refusals, silence, and replies that nobody awaits. It does not
// decide when the next attempt is (delivery/delivery_policy), nor whom a refusal is about (refusal_subject).

#include "carriers/smtp/refusal/judgement.hpp"

namespace mailroom::smtp {
namespace {

using enum delivery::Verdict;

/// A reply to MAIL, RCPT, DATA, or the end of the message.
MailJudgement judge_refusal(const SmtpExchange& exchange) {
  if (exchange.step == SmtpStep::mail) {
    // It may be a second reply to the mail before, which came after the first one.
    if (exchange.reused) return {deferred, false, true};
    // The sender is the same for every mail, so the relay has said nothing about this one.
    if (!exchange.is_own_mail_command) return {unavailable, false, false};
  } else if (exchange.about == delivery::RefusalSubject::everyone) {
    return {unavailable, false, false};
  }
  // RFC 5321, section 3.8: the relay closes the connection, which may have carried enough mails.
  if (exchange.code == 421 && exchange.reused && exchange.step > SmtpStep::mail)
    return {deferred, false, true};
  // RFC 5321, section 4.2.1: 5xx says not to try the same again, 4xx to try later.
  return {exchange.code >= 500 ? rejected : deferred, true, false};
}

/// No definite reply after MAIL was sent.
MailJudgement judge_silence(const SmtpExchange& exchange) {
  // RFC 5321, section 6.1: the relay may have taken the mail, and its reply may be lost.
  if (exchange.step == SmtpStep::end) return {unknown, true, false};
  if (exchange.stop == SmtpStop::interrupted) return {deferred, false, false};
  // RFC 5321, section 4.1.1.4: without its end the relay must not take the message.
  if (exchange.step == SmtpStep::body) return {deferred, true, false};
  // A relay that is slow on a fresh connection is so on the next one. A connection that was idle may be gone
  // without notice.
  const bool again = exchange.stop == SmtpStop::lost || exchange.reused;
  return {exchange.step == SmtpStep::mail ? unavailable : deferred, false, again};
}

}  // namespace

MailJudgement judge(const SmtpExchange& exchange) {
  using enum SmtpStop;
  if (exchange.stop == no_auth || exchange.stop == no_login || exchange.stop == no_sender_smtputf8)
    return {unavailable, false, false};
  // RFC 6531, section 3.2, and RFC 6152, section 3: such a mail must not be sent to a relay without the
  // extension, and to convert it would break its signature.
  if (exchange.stop == SmtpStop::no_smtputf8 || exchange.stop == SmtpStop::no_8bitmime)
    return {rejected, true, false};
  if (exchange.step < SmtpStep::mail) {
    // A kept connection that has gone takes not even MAIL.
    const bool has_gone = exchange.reused && exchange.stop == SmtpStop::lost;
    return {exchange.stop == SmtpStop::interrupted ? deferred : unavailable, false, has_gone};
  }
  if (exchange.code >= 400 && is_definite(exchange.code)) return judge_refusal(exchange);
  if (exchange.step == SmtpStep::end && is_definite(exchange.code)) return {accepted, true, false};
  if (is_unexpected(exchange) && exchange.stop != SmtpStop::interrupted && exchange.step != SmtpStep::end)
    return {exchange.step == SmtpStep::mail ? unavailable : deferred, exchange.step != SmtpStep::mail, false};
  return judge_silence(exchange);
}

}  // namespace mailroom::smtp
