#include "smtp/relay_handle.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "smtp/judgement.hpp"
#include "smtp/relay_wish.hpp"
#include "smtp/reply_text.hpp"

namespace mailroom {
namespace {

TimePoint now() {
  return std::chrono::steady_clock::now();
}

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

}  // namespace

RelayHandle::RelayHandle(RelayUrl relay_url, RelayOptions options)
    : url(std::move(relay_url)),
      options_(std::move(options)),
      secrets_(secrets_of_login(url.user, options_.password)),
      dialogue_({.timeout = options_.timeout,
                 .at_end = std::max(options_.timeout, options_.end_timeout),
                 .wants_auth = !url.user.empty()}),
      connection_(url, options_, sockets, dialogue_) {}

/// True if the relay waits for the message. The exchange says where it ended otherwise.
bool RelayHandle::send_envelope(const Mail& mail) {
  const std::array<std::string, 3> commands{
      fmt::format("MAIL FROM:<{}>{}\r\n", mail.from, mail.needs_smtputf8 ? " SMTPUTF8" : ""),
      fmt::format("RCPT TO:<{}>\r\n", mail.to), "DATA\r\n"};
  const bool at_once = dialogue_.offers_pipelining();
  std::string unsent = at_once ? commands[0] + commands[1] + commands[2] : "";
  for (const auto& command : commands) {
    dialogue_.sent(command, now());
    if (!at_once) unsent = command;
    if (is_rested_ && &command == &commands.front()) dialogue_.hurry(options_.rested_timeout, now());
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
  dialogue_.sent(command, now());
  dialogue_.hurry(short_limit, now());
  const bool is_reset =
      connection_.send(command) && connection_.read_reply() && dialogue_.exchange().code / 100 == 2;
  dialogue_.begin(now());
  return is_reset && !connection_.has_input();
}

/// Reads the replies to the commands that were sent together with the one that was refused.
bool RelayHandle::read_other_replies(SmtpStep refused) {
  if (!dialogue_.offers_pipelining() || refused >= SmtpStep::data) return true;
  for (const std::string_view command : {"RCPT", "DATA"}) {
    if (command == "RCPT" && refused == SmtpStep::rcpt) continue;
    dialogue_.sent(command, now());
    dialogue_.hurry(short_limit, now());
    if (!connection_.read_reply()) return false;
  }
  if (dialogue_.exchange().code != 354) return true;
  // RFC 2920, 3.1: a message without recipients, and without lines.
  dialogue_.message_ended(now());
  dialogue_.hurry(short_limit, now());
  return connection_.send(".\r\n") && connection_.read_reply();
}

void RelayHandle::clear_up(const SmtpExchange& exchange, MailOutcome outcome) {
  last_used_ = now();
  if (outcome == MailOutcome::accepted) return;
  const bool is_refusal = exchange.stop == SmtpStop::none && exchange.step >= SmtpStep::mail &&
                          exchange.code >= 400 && exchange.code != 421;
  // A late reply to this mail would be taken for the reply to the next one.
  if (!is_refusal || !read_other_replies(exchange.step)) return connection_.drop();
  was_refused_ = true;
  if (outcome == MailOutcome::unavailable) connection_.close();
}

void RelayHandle::transact(const Mail& mail) {
  if (!send_envelope(mail) || connection_.has_input()) return;
  dialogue_.message_began(now());
  // What was not sent whole has no end that the relay could have seen.
  if (!connection_.send(stuffed(mail.message))) return;
  dialogue_.message_ended(now());
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

RelayFault RelayHandle::fault_of(const SmtpExchange& exchange) const {
  if (exchange.stop == SmtpStop::no_auth) return RelayFault::no_auth;
  switch (opened_) {
    case CURLE_OK:
      // libcurl accepts some replies to NOOP that are refusals.
      return exchange.code / 100 == 2 ? RelayFault::none : RelayFault::refused;
    case CURLE_USE_SSL_FAILED:
      return RelayFault::no_starttls;
    case CURLE_SSL_CONNECT_ERROR:
      return RelayFault::tls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return RelayFault::certificate;
    case CURLE_LOGIN_DENIED:
      return RelayFault::login;
    default:
      break;
  }
  if (exchange.step == SmtpStep::auth) return RelayFault::login;
  const bool has_answered = exchange.code != 0 || exchange.step != SmtpStep::connect;
  return has_answered ? RelayFault::refused : RelayFault::unreachable;
}

RelayCheck RelayHandle::check() {
  dialogue_.begin(now());
  opened_ = connection_.open();
  if (opened_ == CURLE_OK && dialogue_.is_fit_for(false)) {
    constexpr std::string_view command = "NOOP\r\n";
    dialogue_.sent(command, now());
    if (connection_.send(command)) connection_.read_reply();
  }
  const auto exchange = finished_exchange();
  const auto fault = fault_of(exchange);
  if (fault != RelayFault::none) connection_.drop();
  const bool has_reply = fault == RelayFault::none || exchange.code >= 400;
  const auto text =
      fault == RelayFault::none ? dialogue_.reply().text() : text_of(exchange, MailOutcome::unavailable);
  return {.fault = fault,
          .code = has_reply ? exchange.code : 0,
          .reply = recorded_reply(text, secrets_),
          .encrypted = requires_tls(url, options_)};
}

std::string RelayHandle::text_of(const SmtpExchange& exchange, MailOutcome outcome) const {
  const auto& reply = dialogue_.reply();
  if (outcome == MailOutcome::accepted) return reply.last_line();
  const bool is_refusal = exchange.code >= 400 && is_definite(exchange.code);
  if (is_refusal && exchange.stop != SmtpStop::no_auth) return reply.text();
  if (opened_ == CURLE_USE_SSL_FAILED) return "the relay does not offer STARTTLS, and TLS is required";
  const bool is_own_stop = exchange.stop != SmtpStop::none && exchange.stop != SmtpStop::lost;
  if (is_own_stop || exchange.step >= SmtpStep::mail || *connection_.error() == '\0') {
    return missing_reply_text(exchange, dialogue_.limit());
  }
  return connection_.error();
}

Delivery RelayHandle::attempt(const Mail& mail, bool on_fresh_connection, bool& again) {
  dialogue_.begin(now());
  is_rested_ = !on_fresh_connection && now() - last_used_ >= options_.rest_time;
  // What has come while the connection was idle would be taken for the reply to this mail.
  const bool is_kept = !on_fresh_connection && is_usable();
  is_rested_ = is_rested_ && is_kept;
  opened_ = is_kept ? CURLE_OK : connection_.open();
  if (!is_kept) was_refused_ = false;
  if (opened_ == CURLE_OK && dialogue_.is_fit_for(mail.needs_smtputf8)) transact(mail);
  const auto exchange = finished_exchange();
  auto judgement = judge(exchange);
  const bool has_reply = exchange.code >= 400 || judgement.outcome == MailOutcome::accepted;
  const auto text = text_of(exchange, judgement.outcome);
  const auto wish = has_reply && judgement.outcome != MailOutcome::accepted
                        ? relay_wish(exchange.step, exchange.code, text, options_.throttled_by)
                        : RelayWish::none;
  const bool is_limit = wish != RelayWish::none && exchange.step >= SmtpStep::mail && exchange.code < 500;
  // A connection that the relay closes may have carried enough mails; another one shows whether it has.
  if (is_limit && !(judgement.again && exchange.code == 421))
    judgement = {MailOutcome::deferred, false, false};
  clear_up(exchange, judgement.outcome);
  again = judgement.again && !sockets.interrupted();
  return {.outcome = judgement.outcome,
          .counts = judgement.counts,
          .code = has_reply ? exchange.code : 0,
          .reply = recorded_reply(text, secrets_),
          .relay = url.address(),
          .retry_after =
              has_reply && judgement.outcome != MailOutcome::accepted ? named_delay(text) : std::nullopt,
          .throttled = wish == RelayWish::lower_rate,
          .crowded = wish == RelayWish::fewer_at_once,
          .before_mail = exchange.step < SmtpStep::mail,
          .waits_for_turn = is_limit};
}

}  // namespace mailroom
