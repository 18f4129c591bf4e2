// Does each SMTP relay take mail from this host? Each way to refuse has its own hint.

#include <algorithm>
#include <fmt/format.h>

#include "base/text.hpp"
#include "doctor/secret_files.hpp"
#include "doctor/subject.hpp"
#include "mail/configured_mail.hpp"
#include "mail/message.hpp"
#include "smtp/configured_relays.hpp"
#include "status/delivery_status.hpp"
#include "status/session_text.hpp"

namespace mailroom {
namespace {

std::string problem_of(RelayFault fault) {
  switch (fault) {
    case RelayFault::none:
      break;
    case RelayFault::unreachable:
      return "cannot be reached";
    case RelayFault::silent:
      return "takes the connection, and does not greet";
    case RelayFault::no_starttls:
    case RelayFault::tls:
      return "cannot be used over TLS";
    case RelayFault::certificate:
      return "has a certificate that is not accepted";
    case RelayFault::no_auth:
    case RelayFault::no_mechanism:
    case RelayFault::login:
      return "does not let the user in";
    case RelayFault::no_smtputf8:
    case RelayFault::sender:
      return "does not take the sender";
    case RelayFault::refused:
      return "takes no mail from this host";
  }
  return "works";
}

bool has_token(const Settings& settings) {
  return !settings.send_token_file.empty() || !settings.send_token_command.empty();
}

/// A restart is right for each kind of service: a reload of one with credentials reads the copy of its last
/// start.
std::string login_hint(const RelayUrl& relay, const Settings& settings) {
  if (!settings.send_token_command.empty())
    return fmt::format(
        "run the command of send.token_command as the senders' user: it must print an access token of {} "
        "that the relay takes",
        relay.user);
  if (!settings.send_token_file.empty())
    return fmt::format("write a valid access token of {} into {}: the next login reads it", relay.user,
                       settings.send_token_file);
  return fmt::format(
      "write the password of {} into {}, and restart the senders: systemctl restart 'mailroom-send@*'",
      relay.user, settings.send_password_file);
}

std::string hint_of(RelayFault fault, const RelayUrl& relay, const Settings& settings) {
  switch (fault) {
    case RelayFault::none:
      break;
    case RelayFault::unreachable:
      return "start the relay, let the firewall pass its port, or name another relay in send.relay";
    case RelayFault::silent:
      return fmt::format(
          "if the port speaks TLS from the first byte, as 465 does, write smtps:// in place of smtp:// before {} in "
          "send.relay; otherwise ask the operator of the relay why it does not answer this host",
          relay.address());
    case RelayFault::no_starttls:
      return "use smtps:// with the relay's port for TLS, usually 465; no password, and no mail over a network, goes without TLS";
    case RelayFault::tls:
      return relay.implicit_tls ? "smtps:// needs a port with TLS from the first byte, usually 465; "
                                  "ports 25 and 587 need smtp://"
                                : "the relay must support TLS 1.2 or newer";
    case RelayFault::certificate:
      return "renew the relay's certificate, name the relay in send.relay as its certificate does, or set "
             "send.ca_file to the certificate of its authority";
    case RelayFault::no_auth:
      return "use the relay's port for authenticated mail, usually 587, or remove the user from send.relay";
    case RelayFault::no_mechanism:
      if (has_token(settings)) return login_hint(relay, settings);
      return "a relay that takes no password needs an access token: set send.token_file or send.token_command; one "
             "that takes passwords does so at its port for authenticated mail, usually 587";
    case RelayFault::login:
      return login_hint(relay, settings);
    case RelayFault::no_smtputf8:
      return "set send.from, and send.reply_to if there is one, to an address in ASCII, or use a relay that offers SMTPUTF8";
    case RelayFault::sender:
      return "set send.from to an address that the relay lets this host or user send from, or ask its operator to allow it";
    case RelayFault::refused:
      return "ask the operator of the relay whether this host may send mail through it; send.hello_name sets the name in EHLO";
  }
  return {};
}

Finding judge_relay(const RelayUrl& relay, const RelayCheck& check, const Settings& settings) {
  if (check.fault == RelayFault::none) {
    const auto user = relay.user.empty() ? std::string("without a user") : "as " + relay.user;
    const auto* const way = check.encrypted       ? "over TLS"
                            : relay.is_loopback() ? "without TLS, since it is on this host"
                                                  : "without TLS, as send.plaintext_relay_for_tests says";
    const auto text =
        fmt::format("{} answers {}, {}, to EHLO {}", relay.address(), way, user, check.hello_name);
    if (check.encrypted || relay.is_loopback()) return fine(text);
    return warning(text, {},
                   "anybody on the way can read the links: remove the setting outside of a test set-up");
  }
  const auto code = check.code == 0 ? std::string() : fmt::format("{} ", check.code);
  return failure(fmt::format("{} {}: {}{}", relay.address(), problem_of(check.fault), code, check.reply), {},
                 hint_of(check.fault, relay, settings));
}

/// A mail of the configured sender, to nobody.
std::optional<Mail> sample_of(const Settings& settings) {
  const auto mail = parse_configured_mail(settings);
  if (!mail.from) return std::nullopt;
  const auto utf8_sender = MessageBuilder(*mail.from, mail.reply_to, mail.headers).utf8_sender();
  return Mail{.from = mail.from->address.text(),
              .to = {},
              .message = {},
              .needs_smtputf8 = !utf8_sender.empty(),
              .utf8_sender = utf8_sender};
}

std::vector<UnavailableSink> read_unavailable(Subject& subject) {
  if (!subject.connection || !subject.schema_usable || !subject.has_tables) return {};
  return subject.connection->transact(
      [](pqxx::work& transaction) { return read_unavailable_sinks(transaction); });
}

/// What a relay says to a recipient or to a message, a check cannot see: the senders have.
Finding judge_senders_view(const UnavailableSink& sink) {
  return failure(
      fmt::format("{} answers this check, and has taken no mail of the senders for {}, after {}: {}",
                  sink.name, age_text(sink.lasts), counted(sink.failures, "failure"), sink.reason),
      {},
      "ask the operator of the relay; the senders try it again by themselves, and mailroom send --to ADDRESS "
      "sends one mail for trial");
}

}  // namespace

Findings check_relays(Subject& subject) {
  if (!subject.settings_complete) return {not_checked("the configuration cannot be read")};
  const auto& settings = *subject.settings;
  if (settings.send_relay.empty()) return {fine("not configured")};
  Findings findings;
  if (!settings.send_password_file.empty())
    findings = judge_permissions("password", settings.send_password_file, settings.allow_readable_key);
  if (!settings.send_token_file.empty()) {
    for (auto& finding : judge_permissions("token", settings.send_token_file, settings.allow_readable_key))
      findings.push_back(std::move(finding));
  }
  if (any_failure(findings)) return findings;
  const auto configured = read_relays(settings);
  const auto sample = sample_of(settings);
  const auto unavailable = read_unavailable(subject);
  for (const auto& relay : configured.relays) {
    const auto check = Relay(relay, configured.options).check(sample ? &*sample : nullptr);
    findings.push_back(judge_relay(relay, check, settings));
    const auto known = std::ranges::find(unavailable, relay.address(), &UnavailableSink::name);
    if (check.fault == RelayFault::none && known != unavailable.end())
      findings.push_back(judge_senders_view(*known));
  }
  return findings;
}

}  // namespace mailroom
