// What is found out about a relay without a mail: how far a session gets, and the fault that stops it.

#include "base/clock.hpp"
#include "carriers/smtp/refusal/relay_fault.hpp"
#include "carriers/smtp/session/attempts.hpp"
#include "delivery/reply_text.hpp"

namespace mailroom::smtp {

RelayFault RelayAttempts::fault_of(const SmtpExchange& exchange) const {
  if (exchange.stop == SmtpStop::no_smtp) return RelayFault::no_smtp;
  if (exchange.stop == SmtpStop::no_auth) return RelayFault::no_auth;
  if (exchange.stop == SmtpStop::no_login) return RelayFault::no_mechanism;
  if (exchange.stop == SmtpStop::no_sender_smtputf8) return RelayFault::no_smtputf8;
  switch (opened_) {
    case CURLE_OK:
      if (exchange.step == SmtpStep::auth) return RelayFault::login;
      if (exchange.code / 100 == 2) return RelayFault::none;
      break;
    case CURLE_USE_SSL_FAILED:
      return RelayFault::no_starttls;
    case CURLE_SSL_CONNECT_ERROR:
      return RelayFault::tls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return RelayFault::certificate;
    default:
      break;
  }
  if (exchange.code >= 400) return fault_of_refusal(exchange.step, exchange.code, dialogue_.reply().text());
  if (exchange.code != 0 || exchange.step != SmtpStep::connect) return RelayFault::refused;
  return connection_.was_reached() ? RelayFault::silent : RelayFault::unreachable;
}

RelayCheck RelayAttempts::check(const delivery::Envelope* sample) {
  dialogue_.begin(steady_now());
  opened_ = open();
  if (is_fit_for(sample == nullptr ? delivery::Envelope{} : *sample)) {
    if (sample == nullptr) {
      connection_.command("NOOP");
    } else {
      say_sender(*sample);
    }
  }
  const auto exchange = finished_exchange();
  const auto fault = fault_of(exchange);
  if (fault != RelayFault::none && awaits_command(exchange)) connection_.close();
  if (fault != RelayFault::none && !awaits_command(exchange)) connection_.drop();
  const bool has_reply = fault == RelayFault::none || exchange.code >= 400;
  const auto text = fault == RelayFault::none ? dialogue_.reply().text()
                                              : text_of(exchange, delivery::Verdict::unavailable);
  return {.fault = fault,
          .code = has_reply ? exchange.code : 0,
          .reply = delivery::recorded_reply(text, login_.secrets()),
          .encrypted = requires_tls(url, options_),
          .hello_name = options_.hello_name,
          .greeting = dialogue_.greeting()};
}

}  // namespace mailroom::smtp
