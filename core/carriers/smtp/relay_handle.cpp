// Sends envelope and message, pipelined where that is offered, and clears up after a refusal.

#include "carriers/smtp/relay_handle.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "carriers/smtp/answer.hpp"
#include "carriers/smtp/refusal.hpp"
#include "delivery/reply_text.hpp"

namespace mailroom {
namespace {

/// For replies that decide nothing.
constexpr Milliseconds short_limit{3000};

/// `message` as it goes over the wire (RFC 5321, section 4.5.2): a dot more where a line begins with one, and
/// the end.
std::string stuffed(std::string_view message) {
  constexpr std::string_view line_end = "\r\n";
  constexpr std::string_view dotted_line = "\r\n.";
  std::string bytes;
  bytes.reserve(message.size() + message.size() / 64 + 16);
  if (message.starts_with('.')) bytes += '.';
  for (auto at = message.find(dotted_line); at != std::string_view::npos; at = message.find(dotted_line)) {
    bytes.append(message.substr(0, at + dotted_line.size())) += '.';
    message.remove_prefix(at + dotted_line.size());
  }
  bytes += message;
  if (!bytes.empty() && !bytes.ends_with(line_end)) bytes += line_end;
  return bytes += ".\r\n";
}

std::string mail_command(const Envelope& mail, bool offers_dsn) {
  // Of a bounce the header suffices, and the id comes back with it (RFC 3461).
  const bool has_id = offers_dsn && !mail.id.empty();
  return fmt::format("MAIL FROM:<{}>{}{}", mail.from, mail.needs_smtputf8 ? " SMTPUTF8" : "",
                     has_id ? " RET=HDRS ENVID=" + mail.id : "");
}

}  // namespace

RelayHandle::RelayHandle(RelayUrl relay_url, RelayOptions options)
    : url(std::move(relay_url)),
      options_(std::move(options)),
      secrets_(secrets_of_login(url.user, options_.password)),
      dialogue_({.timeout = options_.timeout,
                 .at_end = std::max(options_.timeout, options_.end_timeout),
                 .wants_auth = !url.user.empty()}),
      connection_(url, options_, sockets, dialogue_) {}

/// False, and the exchange says so, if there is no connection, or if it lacks what `mail` needs.
bool RelayHandle::is_fit_for(const Envelope& mail) {
  utf8_sender_ = mail.utf8_sender;
  const bool is_open = opened_ == CURLE_OK && dialogue_.exchange().stop == SmtpStop::none;
  const bool has_failed_login = dialogue_.exchange().step == SmtpStep::auth && !dialogue_.is_authenticated();
  return is_open && !has_failed_login && dialogue_.is_fit_for(mail.needs_smtputf8, !mail.utf8_sender.empty());
}

/// True if the relay waits for the message. The exchange says where it ended otherwise.
bool RelayHandle::send_envelope(const Envelope& mail) {
  const std::array<std::string, 3> commands{mail_command(mail, takes_envid()) + "\r\n",
                                            fmt::format("RCPT TO:<{}>\r\n", mail.to), "DATA\r\n"};
  const bool at_once = dialogue_.offers_pipelining();
  std::string unsent = at_once ? commands[0] + commands[1] + commands[2] : "";
  for (const auto& command : commands) {
    dialogue_.sent(command, steady_now());
    if (!at_once) unsent = command;
    if (is_rested_ && &command == &commands.front()) dialogue_.hurry(options_.rested_timeout, steady_now());
    if (!unsent.empty() && !connection_.send(std::exchange(unsent, {}))) return false;
    if (!connection_.read_reply()) return false;
    const auto& exchange = dialogue_.exchange();
    if (exchange.step == SmtpStep::data ? exchange.code != 354 : exchange.code / 100 != 2) return false;
  }
  return true;
}

bool RelayHandle::is_usable() {
  return connection_.is_quiet() && (!was_refused_ || reset());
}

bool RelayHandle::reset() {
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
bool RelayHandle::read_other_replies(SmtpStep refused) {
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

void RelayHandle::clear_up(const SmtpExchange& exchange, Verdict outcome) {
  last_used_ = steady_now();
  if (outcome == Verdict::accepted || exchange.stop == SmtpStop::no_smtputf8) return;
  if (awaits_command(exchange) && (exchange.step < SmtpStep::mail || exchange.stop != SmtpStop::none))
    return connection_.close();
  const bool is_refusal = exchange.stop == SmtpStop::none && exchange.step >= SmtpStep::mail &&
                          exchange.code >= 400 && exchange.code != 421;
  // A late reply to this mail would be taken for the reply to the next one.
  if (!is_refusal || !read_other_replies(exchange.step)) return connection_.drop();
  was_refused_ = true;
  if (outcome == Verdict::unavailable) connection_.close();
}

void RelayHandle::transact(const Message& mail) {
  if (!send_envelope(mail.envelope) || connection_.has_input()) return;
  dialogue_.message_began(steady_now());
  // What was not sent whole has no end that the relay could have seen.
  if (!connection_.send(stuffed(mail.body))) return;
  dialogue_.message_ended(steady_now());
  connection_.read_reply();
}

/// What is known at the end of an attempt.
SmtpExchange RelayHandle::finished_exchange() const {
  auto exchange = dialogue_.exchange();
  if (exchange.stop == SmtpStop::none && sockets.interrupted()) exchange.stop = SmtpStop::interrupted;
  if (exchange.stop == SmtpStop::none && opened_ == CURLE_OPERATION_TIMEDOUT)
    exchange.stop = SmtpStop::timed_out;
  if (exchange.stop == SmtpStop::none && !is_definite(exchange.code)) exchange.stop = SmtpStop::lost;
  return exchange;
}

/// MAIL and RSET, at an address of the relay that takes mail.
void RelayHandle::say_sender(const Envelope& sample) {
  do {
    if (!command(mail_command(sample, takes_envid()))) return;
    if (dialogue_.exchange().code / 100 == 2) command("RSET");
  } while (dialogue_.exchange().step == SmtpStep::mail && dialogue_.exchange().code == 421 &&
           open_elsewhere() && is_fit_for(sample));
}

std::string RelayHandle::text_of(const SmtpExchange& exchange, Verdict outcome) const {
  const auto& reply = dialogue_.reply();
  if (outcome == Verdict::accepted) return reply.last_line();
  const bool is_refusal = exchange.code >= 400 && is_definite(exchange.code);
  const bool is_own_stop = exchange.stop != SmtpStop::none && exchange.stop != SmtpStop::lost;
  if (is_refusal && (!is_own_stop || exchange.stop == SmtpStop::interrupted)) return reply.text();
  if (exchange.stop == SmtpStop::no_smtp) return no_smtp_text(reply.text());
  if (exchange.stop == SmtpStop::no_login) return login_problem_;
  if (exchange.stop == SmtpStop::no_sender_smtputf8)
    return fmt::format("the relay does not offer SMTPUTF8, which the sender {} needs", utf8_sender_);
  if (opened_ == CURLE_USE_SSL_FAILED) return "the relay does not offer STARTTLS, and TLS is required";
  if (is_unexpected(exchange) && !is_own_stop)
    return fmt::format("unexpected reply to {}: {}", step_name(exchange.step), reply.text());
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
bool RelayHandle::is_silent(const SmtpExchange& exchange) const {
  return exchange.step == SmtpStep::connect && exchange.stop == SmtpStop::timed_out && !url.implicit_tls &&
         connection_.was_reached();
}

Answer RelayHandle::attempt(const Message& message, bool on_fresh_connection, bool& again) {
  const auto& mail = message.envelope;
  dialogue_.begin(steady_now());
  is_rested_ = !on_fresh_connection && steady_now() - last_used_ >= options_.rest_time;
  // What has come while the connection was idle would be taken for the reply to this mail.
  const bool is_kept = !on_fresh_connection && is_usable();
  is_rested_ = is_rested_ && is_kept;
  opened_ = is_kept ? CURLE_OK : open();
  if (!is_kept) was_refused_ = false;
  if (is_fit_for(mail)) transact(message);
  auto exchange = finished_exchange();
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
    judgement = {Verdict::deferred, false, true};
  }
  const bool is_limit = wish != RelayWish::none && exchange.step >= SmtpStep::mail;
  // A connection that the relay closes may have carried enough mails; another one shows whether it has.
  if (is_limit && !(judgement.again && exchange.code == 421)) judgement = {Verdict::deferred, false, false};
  clear_up(exchange, judgement.verdict);
  again = judgement.again && !sockets.interrupted();
  const bool is_accepted = judgement.verdict == Verdict::accepted;
  const bool has_reply = exchange.code >= 400 || is_accepted || is_unexpected(exchange);
  const bool is_unclear = exchange.about == RefusalSubject::unclear && exchange.code >= 500;
  const bool may_be_about_all = exchange.about == RefusalSubject::everyone || is_unclear || is_limit;
  const bool is_named = exchange.step > SmtpStep::mail && exchange.code >= 400 && may_be_about_all;
  return {.verdict = judgement.verdict,
          .sink = url.name(),
          .code = has_reply ? exchange.code : 0,
          .reply = recorded_reply(text, secrets_),
          .wait = has_reply && !is_accepted ? named_delay(text) : std::nullopt,
          .is_excused = !judgement.counts,
          .throttled = wish == RelayWish::lower_rate,
          .crowded = wish == RelayWish::fewer_at_once,
          .before_message = exchange.step < SmtpStep::mail,
          .waits_for_turn = is_limit,
          .refusal = is_named ? refusal_key(exchange.code, text, mail.to) : std::string()};
}

RelayWish RelayHandle::wish_of(const SmtpExchange& exchange, const std::string& text,
                               const Envelope& mail) const {
  const int code = exchange.code >= 400 ? exchange.code : 0;
  if (is_configured_wish(code, text, options_.throttled_by)) return RelayWish::lower_rate;
  return relay_wish(exchange.step, code, own_words(text, mail.to), exchange.about);
}

}  // namespace mailroom
