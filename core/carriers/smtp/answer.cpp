// The cases of the table in docs/smtp.md: refusals, silence, and replies that nobody awaits.

#include "carriers/smtp/answer.hpp"

#include <array>
#include <fmt/format.h>

#include "base/clock.hpp"

namespace mailroom {
namespace {

using enum Verdict;

constexpr std::array<std::string_view, 11> step_names{"the connection",
                                                      "EHLO",
                                                      "STARTTLS",
                                                      "AUTH",
                                                      "NOOP",
                                                      "RSET",
                                                      "MAIL",
                                                      "RCPT",
                                                      "DATA",
                                                      "a part of the message",
                                                      "the end of the message"};

/// A reply to MAIL, RCPT, DATA, or the end of the message.
MailJudgement judge_refusal(const SmtpExchange& exchange) {
  if (exchange.step == SmtpStep::mail) {
    // It may be a second reply to the mail before, which came after the first one.
    if (exchange.reused) return {deferred, false, true};
    // The sender is the same for every mail, so the relay has said nothing about this one.
    if (!exchange.is_own_mail_command) return {unavailable, false, false};
  } else if (exchange.about == RefusalSubject::everyone) {
    return {unavailable, false, false};
  }
  // The relay closes the connection, which may have carried enough mails.
  if (exchange.code == 421 && exchange.reused && exchange.step > SmtpStep::mail)
    return {deferred, false, true};
  return {exchange.code >= 500 ? rejected : deferred, true, false};
}

/// No definite reply after MAIL was sent.
MailJudgement judge_silence(const SmtpExchange& exchange) {
  if (exchange.step == SmtpStep::end) return {unknown, true, false};
  if (exchange.stop == SmtpStop::interrupted) return {deferred, false, false};
  if (exchange.step == SmtpStep::body) return {deferred, true, false};
  // A relay that is slow on a fresh connection is so on the next one. A connection that was idle may be gone
  // without notice.
  const bool again = exchange.stop == SmtpStop::lost || exchange.reused;
  return {exchange.step == SmtpStep::mail ? unavailable : deferred, false, again};
}

}  // namespace

bool is_definite(int code) {
  return (code >= 200 && code < 300) || (code >= 400 && code < 600);
}

bool awaits_command(const SmtpExchange& exchange) {
  switch (exchange.stop) {
    case SmtpStop::no_auth:
    case SmtpStop::no_login:
    case SmtpStop::no_smtputf8:
    case SmtpStop::no_sender_smtputf8:
      return true;
    case SmtpStop::none:
      return is_definite(exchange.code) && exchange.code != 421;
    default:
      return false;
  }
}

MailJudgement judge(const SmtpExchange& exchange) {
  using enum SmtpStop;
  if (exchange.stop == no_auth || exchange.stop == no_login || exchange.stop == no_sender_smtputf8)
    return {unavailable, false, false};
  if (exchange.stop == SmtpStop::no_smtputf8) return {rejected, true, false};
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

bool is_unexpected(const SmtpExchange& exchange) {
  if (exchange.step < SmtpStep::mail || exchange.code == 0) return false;
  if (exchange.code >= 400 && is_definite(exchange.code)) return false;
  return exchange.step == SmtpStep::data ? exchange.code != 354 : exchange.code / 100 != 2;
}

std::string_view step_name(SmtpStep step) {
  return step_names.at(static_cast<std::size_t>(step));
}

std::string missing_reply_text(const SmtpExchange& exchange, Milliseconds waited) {
  const auto step = step_name(exchange.step);
  switch (exchange.stop) {
    case SmtpStop::no_smtp:
      return "what greets is no SMTP server";
    case SmtpStop::no_auth:
      return "the relay offers no AUTH, and a user is configured";
    case SmtpStop::no_login:
      return "no login can begin";
    case SmtpStop::no_smtputf8:
      return "the relay does not offer SMTPUTF8, which the address needs";
    case SmtpStop::no_sender_smtputf8:
      return "the relay does not offer SMTPUTF8, which the sender needs";
    case SmtpStop::interrupted:
      return fmt::format("stopped before the relay answered {}", step);
    case SmtpStop::timed_out:
      return fmt::format("no reply to {} within {}", step, format_duration(waited));
    case SmtpStop::lost:
    case SmtpStop::none:
      break;
  }
  if (exchange.step == SmtpStep::connect) return "the relay closed the connection before its greeting";
  return fmt::format("connection lost after {}", step);
}

}  // namespace mailroom
