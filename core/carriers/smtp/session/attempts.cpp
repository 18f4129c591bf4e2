// Sends envelope and message, pipelined where that is offered, and clears up after a refusal.

#include "carriers/smtp/session/attempts.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "carriers/smtp/refusal/judgement.hpp"
#include "carriers/smtp/refusal/refusal_subject.hpp"
#include "carriers/smtp/session/envelope.hpp"
#include "delivery/reply_text.hpp"

namespace mailroom::smtp {
namespace {

/// Of mails that are sent together (groups.cpp).
constexpr std::size_t smallest_window = 2;

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

RelayAttempts::RelayAttempts(RelayUrl relay_url, RelayOptions options)
    : url(std::move(relay_url)),
      options_(std::move(options)),
      provider_(options_.provider.empty() ? bounce::provider_of_host(url.host)
                                          : bounce::find_provider(options_.provider)),
      dialogue_({.timeout = options_.timeout,
                 .at_end = std::max(options_.timeout, options_.end_timeout),
                 .wants_auth = !url.user.empty()}),
      connection_(url, options_, sockets, dialogue_),
      login_(url, options_, dialogue_, connection_) {}

CURLcode RelayAttempts::open() {
  auto opened = connection_.open();
  do {
    if (opened == CURLE_OK) login_.log_in();
  } while (opened == CURLE_OK && login_.is_shut_out() && connection_.open_next(opened));
  return opened;
}

bool RelayAttempts::open_elsewhere() {
  if (!connection_.open_next(opened_)) return false;
  if (opened_ == CURLE_OK) login_.log_in();
  return opened_ == CURLE_OK && !login_.is_shut_out();
}

/// False, and the exchange says so, if there is no connection, or if it lacks what `mail` needs.
bool RelayAttempts::is_fit_for(const delivery::Envelope& mail) {
  utf8_sender_ = mail.utf8_sender;
  const bool is_open = opened_ == CURLE_OK && dialogue_.exchange().stop == SmtpStop::none;
  const bool has_failed_login = dialogue_.exchange().step == SmtpStep::auth && !dialogue_.is_authenticated();
  return is_open && !has_failed_login &&
         dialogue_.is_fit_for({.smtputf8 = mail.needs_smtputf8,
                               .bits_8 = mail.needs_8bit,
                               .for_sender = !mail.utf8_sender.empty()});
}

/// True if the relay waits for the message. The exchange says where it ended otherwise.
bool RelayAttempts::send_envelope(const delivery::Envelope& mail) {
  constexpr std::array<SmtpStep, 3> steps{SmtpStep::mail, SmtpStep::rcpt, SmtpStep::data};
  std::array<std::string, 3> requests;
  std::ranges::transform(steps, requests.begin(),
                         [&](SmtpStep step) { return request_of(step, mail, takes_envid()); });
  // RFC 2920, section 3.1: all of these may be sent before the first reply.
  const bool at_once = dialogue_.offers_pipelining();
  std::string unsent = at_once ? requests[0] + requests[1] + requests[2] : "";
  for (const auto& request : requests) {
    dialogue_.sent(request, steady_now());
    if (!at_once) unsent = request;
    if (is_rested_ && &request == &requests.front()) dialogue_.hurry(options_.rested_timeout, steady_now());
    if (!unsent.empty() && !connection_.send(std::exchange(unsent, {}))) return false;
    if (!connection_.read_reply()) return false;
    if (!goes_on(dialogue_.exchange().step, dialogue_.exchange().code)) return false;
  }
  return true;
}

bool RelayAttempts::is_usable() {
  return connection_.is_quiet() && (!was_refused_ || reset());
}

bool RelayAttempts::reset() {
  constexpr std::string_view command = "RSET\r\n";
  was_refused_ = false;
  dialogue_.sent(command, steady_now());
  dialogue_.hurry(short_limit, steady_now());
  const bool is_reset =
      connection_.send(command) && connection_.read_reply() && dialogue_.exchange().code / 100 == 2;
  dialogue_.begin(steady_now());
  return is_reset && !connection_.has_input();
}

/// Reads the replies to the commands that were sent together with the one that was refused.
bool RelayAttempts::read_other_replies(SmtpStep refused) {
  if (!dialogue_.offers_pipelining() || refused >= SmtpStep::data) return true;
  for (const std::string_view command : {"RCPT", "DATA"}) {
    if (command == "RCPT" && refused == SmtpStep::rcpt) continue;
    dialogue_.sent(command, steady_now());
    dialogue_.hurry(short_limit, steady_now());
    if (!connection_.read_reply()) return false;
  }
  if (dialogue_.exchange().code != 354) return true;
  // RFC 2920, 3.1: a message without recipients, and without lines.
  dialogue_.message_ended(steady_now());
  dialogue_.hurry(short_limit, steady_now());
  return connection_.send(".\r\n") && connection_.read_reply();
}

void RelayAttempts::clear_up(const SmtpExchange& exchange, delivery::Verdict outcome) {
  last_used_ = steady_now();
  if (outcome == delivery::Verdict::accepted || exchange.stop == SmtpStop::no_smtputf8 ||
      exchange.stop == SmtpStop::no_8bitmime)
    return;
  if (awaits_command(exchange) && (exchange.step < SmtpStep::mail || exchange.stop != SmtpStop::none))
    return connection_.close();
  const bool is_refusal = exchange.stop == SmtpStop::none && exchange.step >= SmtpStep::mail &&
                          exchange.code >= 400 && exchange.code != 421;
  // A late reply to this mail would be taken for the reply to the next one.
  if (!is_refusal || !read_other_replies(exchange.step)) return connection_.drop();
  was_refused_ = true;
  if (outcome == delivery::Verdict::unavailable) connection_.close();
}

/// What goes over the wire: a provider gets the id of the copy in a header that its events repeat.
std::string RelayAttempts::bytes_of(const delivery::Message& mail,
                                    std::string (*framed)(std::string_view)) const {
  const bool is_marked = provider_ != nullptr && provider_->header != nullptr && !mail.envelope.id.empty();
  return is_marked ? framed(with_header(provider_->header(mail.envelope.id), mail.body)) : framed(mail.body);
}

/// False if the mail must not leave: the relay waits for a message that does not come.
bool RelayAttempts::transact(const delivery::Message& mail) {
  if (!send_envelope(mail.envelope) || connection_.has_input()) return true;
  if (!mail.awaits_clearance()) return false;
  dialogue_.message_began(steady_now());
  // What was not sent whole has no end that the relay could have seen.
  if (!connection_.send(bytes_of(mail, stuffed))) return true;
  dialogue_.message_ended(steady_now());
  connection_.read_reply();
  return true;
}

/// What is known at the end of an attempt.
SmtpExchange RelayAttempts::finished_exchange() const {
  auto exchange = dialogue_.exchange();
  if (exchange.stop == SmtpStop::none && sockets.interrupted()) exchange.stop = SmtpStop::interrupted;
  if (exchange.stop == SmtpStop::none && opened_ == CURLE_OPERATION_TIMEDOUT)
    exchange.stop = SmtpStop::timed_out;
  if (exchange.stop == SmtpStop::none && !is_definite(exchange.code)) exchange.stop = SmtpStop::lost;
  return exchange;
}

/// MAIL and RSET, at an address of the relay that takes mail.
void RelayAttempts::say_sender(const delivery::Envelope& sample) {
  do {
    const auto request = request_of(SmtpStep::mail, sample, takes_envid());
    dialogue_.sent(request, steady_now());
    if (!connection_.send(request) || !connection_.read_reply()) return;
    if (dialogue_.exchange().code / 100 == 2) connection_.command("RSET");
  } while (dialogue_.exchange().step == SmtpStep::mail && dialogue_.exchange().code == 421 &&
           open_elsewhere() && is_fit_for(sample));
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

delivery::Answer RelayAttempts::attempt(const delivery::Message& message, bool on_fresh_connection,
                                        bool& again) {
  const auto& mail = message.envelope;
  dialogue_.begin(steady_now());
  is_rested_ = !on_fresh_connection && steady_now() - last_used_ >= options_.rest_time;
  // What has come while the connection was idle would be taken for the reply to this mail.
  const bool is_kept = !on_fresh_connection && is_usable();
  is_rested_ = is_rested_ && is_kept;
  const auto began = steady_now();
  if (!is_kept) was_refused_ = has_worked_ = is_proven_ = false;
  opened_ = is_kept ? CURLE_OK : open();
  if (is_fit_for(mail) && !transact(message)) {
    connection_.drop();
    return {.sink = url.name(), .was_tried = false};
  }
  const auto exchange = finished_exchange();
  auto answer = answer_to(message, exchange, again);
  clear_up(exchange, answer.verdict);
  again = again && !sockets.interrupted();
  has_worked_ = answer.verdict == delivery::Verdict::accepted;
  if (has_worked_ && is_kept) {
    took_alone_ = steady_now() - began;
    window_ = std::max(window_, smallest_window);
  }
  return answer;
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
