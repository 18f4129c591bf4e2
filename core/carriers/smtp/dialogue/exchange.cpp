// Which codes decide, and the words for a reply that is missing.

#include "carriers/smtp/dialogue/exchange.hpp"

#include <fmt/format.h>

namespace mailroom::smtp {

bool is_definite(int code) {
  return (code >= 200 && code < 300) || (code >= 400 && code < 600);
}

bool awaits_command(const SmtpExchange& exchange) {
  switch (exchange.stop) {
    case SmtpStop::no_auth:
    case SmtpStop::no_login:
    case SmtpStop::no_smtputf8:
    case SmtpStop::no_8bitmime:
    case SmtpStop::no_sender_smtputf8:
      return true;
    case SmtpStop::none:
      return is_definite(exchange.code) && exchange.code != 421;
    default:
      return false;
  }
}

bool is_unexpected(const SmtpExchange& exchange) {
  if (exchange.step < SmtpStep::mail || exchange.code == 0) return false;
  if (exchange.code >= 400 && is_definite(exchange.code)) return false;
  return !goes_on(exchange.step, exchange.code);
}

std::string missing_reply_text(const SmtpExchange& exchange, Milliseconds waited) {
  const auto step = form_of(exchange.step).name;
  switch (exchange.stop) {
    case SmtpStop::no_smtp:
      return "what greets is no SMTP server";
    case SmtpStop::no_auth:
      return "the relay offers no AUTH, and a user is configured";
    case SmtpStop::no_login:
      return "no login can begin";
    case SmtpStop::no_smtputf8:
      return "the relay does not offer SMTPUTF8, which the mail needs";
    case SmtpStop::no_8bitmime:
      return "the relay does not offer 8BITMIME, which the mail needs";
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

}  // namespace mailroom::smtp
