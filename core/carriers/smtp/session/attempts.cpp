// Sends envelope and message, pipelined where that is offered, and clears up after a refusal.
//
// The envelope of the next mail goes ahead, with the message of this one (RFC 2920, section 3.1: the end of a
// message may be the first of a group): a mail takes one round trip then. What is known of a mail does not
// change by that, since no message leaves before its own 354.

#include "carriers/smtp/session/attempts.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.hpp"
#include "carriers/smtp/session/envelope.hpp"

namespace mailroom::smtp {
namespace {

/// How long no envelope goes ahead to a relay that did not answer one.
constexpr std::chrono::hours ahead_rest{1};

Dialogue::Needs needs_of(const delivery::Envelope& mail) {
  return {
      .smtputf8 = mail.needs_smtputf8, .bits_8 = mail.needs_8bit, .for_sender = !mail.utf8_sender.empty()};
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
  ahead_ = nullptr;
  auto opened = connection_.open();
  do {
    if (opened == CURLE_OK) login_.log_in();
  } while (opened == CURLE_OK && login_.is_shut_out() && connection_.open_next(opened));
  return opened;
}

bool RelayAttempts::open_elsewhere() {
  ahead_ = nullptr;
  if (!connection_.open_next(opened_)) return false;
  if (opened_ == CURLE_OK) login_.log_in();
  return opened_ == CURLE_OK && !login_.is_shut_out();
}

/// False, and the exchange says so, if there is no connection, or if it lacks what `mail` needs.
bool RelayAttempts::is_fit_for(const delivery::Envelope& mail) {
  utf8_sender_ = mail.utf8_sender;
  const bool is_open = opened_ == CURLE_OK && dialogue_.exchange().stop == SmtpStop::none;
  const bool has_failed_login = dialogue_.exchange().step == SmtpStep::auth && !dialogue_.is_authenticated();
  return is_open && !has_failed_login && dialogue_.is_fit_for(needs_of(mail));
}

void RelayAttempts::close() {
  ahead_ = nullptr;
  connection_.close();
}

void RelayAttempts::drop() {
  ahead_ = nullptr;
  connection_.drop();
}

/// True if the relay waits for the message. The exchange says where it ended otherwise.
bool RelayAttempts::send_envelope(const delivery::Envelope& mail) {
  constexpr std::array<SmtpStep, 3> steps{SmtpStep::mail, SmtpStep::rcpt, SmtpStep::data};
  std::array<std::string, 3> requests;
  std::ranges::transform(steps, requests.begin(),
                         [&](SmtpStep step) { return request_of(step, mail, takes_envid()); });
  // RFC 2920, section 3.1: all of these may be sent before the first reply.
  const bool at_once = dialogue_.offers_pipelining();
  const bool is_ahead = std::exchange(ahead_, nullptr) != nullptr;
  std::string unsent = at_once && !is_ahead ? requests[0] + requests[1] + requests[2] : "";
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
  if (ahead_ != nullptr) return is_answered();
  return connection_.is_quiet() && (!was_refused_ || reset());
}

bool RelayAttempts::reset() {
  return connection_.send(reset_command) && is_reset() && !connection_.has_input();
}

/// Reads the reply to RSET.
bool RelayAttempts::is_reset() {
  was_refused_ = false;
  dialogue_.sent(reset_command, steady_now());
  dialogue_.hurry(short_limit, steady_now());
  const bool is_reset = connection_.read_reply() && dialogue_.exchange().code / 100 == 2;
  dialogue_.begin(steady_now());
  return is_reset;
}

/// True if the relay answers what went ahead. Some throw away what they have received with a message's end.
bool RelayAttempts::is_answered() {
  if (is_reset()) return true;
  if (!sockets.interrupted()) none_ahead_until_ = steady_now() + ahead_rest;
  drop();
  return false;
}

bool RelayAttempts::may_go_ahead() const {
  return dialogue_.offers_pipelining() && steady_now() >= none_ahead_until_;
}

/// What goes ahead of `next`; empty if nothing may. RSET comes first: the relay may refuse the mail before.
std::string RelayAttempts::ahead_of(const delivery::Message& next) const {
  const auto& mail = next.envelope;
  if (!may_go_ahead() || !has_safe_addresses(mail) || !is_transmittable(next.body) ||
      dialogue_.obstacle_to(needs_of(mail)) != SmtpStop::none)
    return {};
  std::string commands(reset_command);
  for (const auto step : {SmtpStep::mail, SmtpStep::rcpt, SmtpStep::data})
    commands += request_of(step, mail, takes_envid());
  return commands;
}

void RelayAttempts::forget_ahead() {
  if (ahead_ != nullptr) drop();
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
    return close();
  const bool is_refusal = exchange.stop == SmtpStop::none && exchange.step >= SmtpStep::mail &&
                          exchange.code >= 400 && exchange.code != 421;
  // A late reply to this mail would be taken for the reply to the next one.
  if (!is_refusal || !read_other_replies(exchange.step)) return drop();
  was_refused_ = true;
  if (outcome == delivery::Verdict::unavailable) close();
}

/// What goes over the wire: a provider gets the id of the copy in a header that its events repeat.
std::string RelayAttempts::bytes_of(const delivery::Message& mail,
                                    std::string (*framed)(std::string_view)) const {
  const bool is_marked = provider_ != nullptr && provider_->header != nullptr && !mail.envelope.id.empty();
  return is_marked ? framed(with_header(provider_->header(mail.envelope.id), mail.body)) : framed(mail.body);
}

/// False if the mail must not leave: the relay waits for a message that does not come.
bool RelayAttempts::transact(const delivery::Message& mail, const delivery::Message* next) {
  if (!send_envelope(mail.envelope) || connection_.has_input()) return true;
  if (!mail.awaits_clearance()) return false;
  dialogue_.message_began(steady_now());
  auto bytes = bytes_of(mail, stuffed);
  const auto message_size = bytes.size();
  if (next != nullptr) bytes += ahead_of(*next);
  const bool is_ahead = bytes.size() > message_size;
  const bool is_sent = connection_.send(bytes);
  // What was not sent whole has no end that the relay could have seen.
  if (connection_.sent() < message_size) return true;
  if (is_ahead && next->clearance != nullptr) next->clearance->ask();
  dialogue_.message_ended(steady_now());
  connection_.read_reply();
  if (!is_sent) drop();
  if (is_sent && is_ahead) ahead_ = next;
  return true;
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

delivery::Answer RelayAttempts::attempt(const delivery::Message& message, bool on_fresh_connection,
                                        bool& again, const delivery::Message* next) {
  const auto& mail = message.envelope;
  dialogue_.begin(steady_now());
  is_rested_ = !on_fresh_connection && steady_now() - last_used_ >= options_.rest_time;
  const bool is_ahead = ahead_ != nullptr;
  // What has come while the connection was idle would be taken for the reply to this mail.
  const bool is_kept = !on_fresh_connection && is_usable();
  is_rested_ = is_rested_ && is_kept;
  const auto began = steady_now();
  if (!is_kept) was_refused_ = has_worked_ = is_proven_ = false;
  opened_ = is_kept ? CURLE_OK : open();
  if (is_fit_for(mail) && !transact(message, next)) {
    drop();
    return {.sink = url.name(), .was_tried = false};
  }
  const auto exchange = finished_exchange();
  auto answer = answer_to(message, exchange, again);
  clear_up(exchange, answer.verdict);
  again = again && !sockets.interrupted();
  has_worked_ = answer.verdict == delivery::Verdict::accepted;
  if (has_worked_ && is_kept) {
    (is_ahead ? took_ahead_ : took_alone_) = steady_now() - began;
    if (!is_ahead) window_ = std::max(window_, smallest_window);
  }
  return answer;
}

}  // namespace mailroom::smtp
