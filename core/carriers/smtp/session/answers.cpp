// What the replies to a mail come to: the answer, its words, and what else a refusal is about.

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/text.hpp"
#include "carriers/smtp/refusal/judgement.hpp"
#include "carriers/smtp/refusal/refusal_subject.hpp"
#include "carriers/smtp/session/attempts.hpp"
#include "delivery/reply_text.hpp"

namespace mailroom::smtp {
namespace {

/// Of a wish. Postfix names the client when it counts the recipients of all its mails.
delivery::VariesWith wish_varies_with(const SmtpExchange& exchange, std::string_view text) {
  const bool is_of_client = holds_in_any_case(text, "too many recipients from");
  return exchange.step == SmtpStep::rcpt && !is_of_client ? delivery::VariesWith::domain
                                                          : delivery::VariesWith::nothing;
}

/// Of a refusal that may be about every mail.
delivery::VariesWith varies_with(const SmtpExchange& exchange) {
  constexpr std::array about_connection{421, 530, 535, 538};
  if (std::ranges::count(about_connection, exchange.code) > 0) return delivery::VariesWith::nothing;
  return exchange.step == SmtpStep::mail ? delivery::VariesWith::sender : delivery::VariesWith::message;
}

}  // namespace

/// What is known at the end of an attempt.
SmtpExchange RelayAttempts::finished_exchange() const {
  auto exchange = dialogue_.exchange();
  if (exchange.stop == SmtpStop::none && sockets.interrupted()) exchange.stop = SmtpStop::interrupted;
  if (exchange.stop == SmtpStop::none && opened_ == CURLE_OPERATION_TIMEDOUT)
    exchange.stop = SmtpStop::timed_out;
  if (exchange.stop == SmtpStop::none && !is_definite(exchange.code)) exchange.stop = SmtpStop::lost;
  return exchange;
}

std::string RelayAttempts::text_of(const SmtpExchange& exchange, delivery::Verdict outcome) const {
  const auto& reply = dialogue_.reply();
  if (outcome == delivery::Verdict::accepted) return reply.last_line();
  const bool is_refusal = exchange.code >= 400 && is_definite(exchange.code);
  const bool is_own_stop = exchange.stop != SmtpStop::none && exchange.stop != SmtpStop::lost;
  if (is_refusal && (!is_own_stop || exchange.stop == SmtpStop::interrupted)) return reply.text();
  if (exchange.stop == SmtpStop::no_smtp) return delivery::no_smtp_text(reply.text());
  if (exchange.stop == SmtpStop::no_login) return login_.problem();
  if (exchange.stop == SmtpStop::no_sender_smtputf8)
    return fmt::format("the relay does not offer SMTPUTF8, which the sender {} needs", utf8_sender_);
  if (opened_ == CURLE_USE_SSL_FAILED) return "the relay does not offer STARTTLS, and TLS is required";
  if (is_unexpected(exchange) && !is_own_stop)
    return fmt::format("unexpected reply to {}: {}", form_of(exchange.step).name, reply.text());
  if (is_silent(exchange)) {
    return fmt::format(
        "connected, but no greeting within {}; a port that speaks TLS from the first byte needs smtps://",
        format_duration(options_.timeout));
  }
  // libcurl's words for a connection that was closed are those of the system.
  const bool was_closed = opened_ == CURLE_RECV_ERROR || opened_ == CURLE_GOT_NOTHING;
  if (is_own_stop || was_closed || exchange.step >= SmtpStep::auth || *connection_.error() == '\0')
    return missing_reply_text(exchange, dialogue_.limit());
  return connection_.error();
}

/// True if the relay took the connection, and has not said a word in time.
bool RelayAttempts::is_silent(const SmtpExchange& exchange) const {
  return exchange.step == SmtpStep::connect && exchange.stop == SmtpStop::timed_out && !url.implicit_tls &&
         connection_.was_reached();
}

/// What the replies to a mail come to. `again`: another attempt may follow at once.
delivery::Answer RelayAttempts::answer_to(const delivery::Message& message, SmtpExchange exchange,
                                          bool& again) {
  const auto& mail = message.envelope;
  exchange.is_own_mail_command = mail.needs_smtputf8 && mail.utf8_sender.empty();
  if (exchange.code >= 400)
    exchange.about = subject_of_refusal(exchange.code, dialogue_.reply().text(), mail.to, mail.from);
  auto judgement = judge(exchange);
  const auto text = text_of(exchange, judgement.verdict);
  const auto wish = wish_of(exchange, text, mail);
  const bool is_syntax = exchange.code == 501 || exchange.code == 504 || exchange.code == 555;
  if (exchange.step == SmtpStep::mail && is_syntax && !mail.id.empty() && takes_envid()) {
    // A firewall or an old relay behind what offers DSN. The mail is tried again without.
    refuses_envid_ = true;
    judgement = {delivery::Verdict::deferred, false, true};
  }
  const bool is_limit = wish != RelayWish::none && exchange.step >= SmtpStep::mail;
  // A connection that the relay closes may have carried enough mails; another one shows whether it has.
  if (is_limit && !(judgement.again && exchange.code == 421))
    judgement = {delivery::Verdict::deferred, false, false};
  again = judgement.again;
  const bool is_accepted = judgement.verdict == delivery::Verdict::accepted;
  const bool has_reply = exchange.code >= 400 || is_accepted || is_unexpected(exchange);
  const bool is_unclear = exchange.about == delivery::RefusalSubject::unclear && exchange.code >= 500;
  const bool may_be_about_all =
      exchange.about == delivery::RefusalSubject::everyone || is_unclear || is_limit;
  const bool is_mail_refused = exchange.step == SmtpStep::mail &&
                               judgement.verdict == delivery::Verdict::unavailable &&
                               varies_with(exchange) != delivery::VariesWith::nothing;
  const bool is_named =
      exchange.code >= 400 && ((exchange.step > SmtpStep::mail && may_be_about_all) || is_mail_refused);
  return {.verdict = judgement.verdict,
          .sink = url.name(),
          .code = has_reply ? exchange.code : 0,
          .reply = delivery::recorded_reply(text, login_.secrets()),
          .wait = has_reply && !is_accepted ? delivery::named_delay(text) : std::nullopt,
          .is_excused = !judgement.counts,
          .throttled = wish == RelayWish::lower_rate,
          .crowded = wish == RelayWish::fewer_at_once,
          .before_message = exchange.step < SmtpStep::mail,
          .waits_for_turn = is_limit,
          .refusal = is_named ? refusal_key(exchange.code, text, mail.to) : std::string(),
          .varies_with = is_limit   ? wish_varies_with(exchange, text)
                         : is_named ? varies_with(exchange)
                                    : delivery::VariesWith::nothing};
}

RelayWish RelayAttempts::wish_of(const SmtpExchange& exchange, const std::string& text,
                                 const delivery::Envelope& mail) const {
  const int code = exchange.code >= 400 ? exchange.code : 0;
  if (is_configured_wish(code, text, options_.throttled_by)) return RelayWish::lower_rate;
  return relay_wish(exchange.step, code, own_words(text, mail.to), exchange.about);
}

}  // namespace mailroom::smtp
