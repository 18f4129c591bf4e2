#include "smtp/relay_handle.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "smtp/judgement.hpp"
#include "smtp/reply_text.hpp"

namespace mailroom {
namespace {

TimePoint now() {
  return std::chrono::steady_clock::now();
}

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
    if (!unsent.empty() && !connection_.send(std::exchange(unsent, {}))) return false;
    if (!connection_.read_reply()) return false;
    const auto& exchange = dialogue_.exchange();
    if (exchange.step == SmtpStep::data ? exchange.code != 354 : exchange.code / 100 != 2) return false;
  }
  return true;
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
  // What has come while the connection was idle would be taken for the reply to this mail.
  const bool is_kept = !on_fresh_connection && connection_.is_quiet();
  opened_ = is_kept ? CURLE_OK : connection_.open();
  if (opened_ == CURLE_OK && dialogue_.is_fit_for(mail.needs_smtputf8)) transact(mail);
  const auto exchange = finished_exchange();
  const auto judgement = judge(exchange);
  // A late reply to this mail would be taken for the reply to the next one.
  if (judgement.outcome != MailOutcome::accepted) connection_.drop();
  again = judgement.again && !sockets.interrupted();
  const bool has_reply = exchange.code >= 400 || judgement.outcome == MailOutcome::accepted;
  const auto text = text_of(exchange, judgement.outcome);
  Delivery delivery{.outcome = judgement.outcome,
                    .counts = judgement.counts,
                    .code = has_reply ? exchange.code : 0,
                    .reply = recorded_reply(text, secrets_),
                    .relay = url.address(),
                    .retry_after = std::nullopt,
                    .throttled = false};
  if (has_reply && delivery.outcome != MailOutcome::accepted) {
    delivery.retry_after = named_delay(text);
    // At STARTTLS and AUTH 454 means something else.
    const bool is_about_mail = exchange.step >= SmtpStep::mail || exchange.code != 454;
    delivery.throttled = is_about_mail && is_throttled(exchange.code, text, options_.throttled_by);
  }
  return delivery;
}

}  // namespace mailroom
