// Connects to each relay, logs in, names the sender, and says what to do.

#include "carriers/smtp/check.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>

#include "base/text.hpp"
#include "carriers/smtp/relay/configured_relays.hpp"
#include "carriers/smtp/session/session.hpp"
#include "mail/configured_mail.hpp"
#include "mail/message.hpp"

namespace mailroom::smtp {
namespace {

carriers::SinkFinding judge_relay(const RelayUrl& relay, const RelayCheck& check,
                                  const config::RelayPath& path) {
  using Level = carriers::SinkFinding::Level;
  if (check.fault != RelayFault::none) {
    const auto code = check.code == 0 ? std::string() : fmt::format("{} ", check.code);
    return {.level = Level::failure,
            .reason = fmt::format("{} {}: {}{}", relay.name(), problem_of(check), code, check.reply),
            .hint = hint_of(check, relay, path),
            .endpoint = relay.name()};
  }
  const auto user = relay.user.empty() ? std::string("without a user") : "as " + relay.user;
  const auto* const way = check.encrypted       ? "over TLS"
                          : relay.is_loopback() ? "without TLS, since it is on this host"
                                                : "without TLS, as send.plaintext_relay_for_tests says";
  carriers::SinkFinding finding{
      .level = Level::fine,
      .reason = fmt::format("{} answers {}, {}, to EHLO {}", relay.name(), way, user, check.hello_name),
      .endpoint = relay.name()};
  if (!check.encrypted && !relay.is_loopback()) {
    finding.level = Level::warning;
    finding.hint = "anybody on the way can read the links: remove the setting outside of a test set-up";
  }
  return finding;
}

/// Says of which relays a power cut loses what they have taken. docs/reliability.md has the measurements.
std::optional<carriers::SinkFinding> judge_acknowledgement(const RelayUrl& relay, const RelayCheck& check) {
  const auto server = early_acknowledger(check.greeting);
  if (server.empty()) return std::nullopt;
  return carriers::SinkFinding{
      .level = carriers::SinkFinding::Level::warning,
      .reason = fmt::format(
          "{} is {}, which answers 250 before a mail is on its disk: a power cut there loses mails "
          "that count as sent",
          relay.name(), server),
      .hint =
          "docs/reliability.md has what was measured of each mail server; mails of that time are sent again by "
          "mailroom resend"};
}

/// The envelope of a mail of the configured sender, to nobody.
std::optional<delivery::Envelope> sample_of(const mail::ConfiguredMail& mail) {
  if (!mail.from) return std::nullopt;
  const auto utf8_sender = mail::MessageBuilder(*mail.from, mail.reply_to, mail.headers).utf8_sender();
  return delivery::Envelope{.from = mail.from->address.text(),
                            .to = {},
                            .needs_smtputf8 = !utf8_sender.empty(),
                            .utf8_sender = utf8_sender};
}

bool has_token(const config::RelayPath& path) {
  return !path.token_file.empty() || !path.token_command.empty();
}

/// A restart is right for each kind of service: a reload of one with credentials reads the copy of its last
/// start.
std::string secret_hint(const RelayUrl& relay, const config::RelayPath& path) {
  if (!path.token_command.empty())
    return fmt::format(
        "run the command of send.token_command as the senders' user: it must print an access token of {} "
        "that the relay takes",
        relay.user);
  if (!path.token_file.empty())
    return fmt::format("write a valid access token of {} into {}: the next login reads it", relay.user,
                       path.token_file);
  return fmt::format(
      "write the password of {} into {}, and restart the senders: systemctl restart 'mailroom-send@*'",
      relay.user, path.password_file);
}

std::string login_hint(const RelayCheck& check, const RelayUrl& relay, const config::RelayPath& path) {
  switch (fault_of_login(check.code, check.reply)) {
    case LoginFault::password:
      break;
    case LoginFault::unsure:
      return fmt::format(
          "let the provider allow {} to use SMTP AUTH, where passwords are switched off unless it does; or {}",
          relay.user, secret_hint(relay, path));
    case LoginFault::app_password:
      return fmt::format("the password of {} is for people: make one for programs at the provider, then {}",
                         relay.user, secret_hint(relay, path));
    case LoginFault::sign_in:
      return fmt::format(
          "sign in as {} at the provider's web site, and confirm that this host may log in; the "
          "password may be right",
          relay.user);
    case LoginFault::switched_off:
      return fmt::format(
          "the password is not the matter: let the provider allow {} to use SMTP AUTH{}", relay.user,
          has_token(path) ? ""
                          : ", or set send.token_file or send.token_command to log in with an access token");
    case LoginFault::mechanism:
      return fmt::format("the relay wants another kind of login for {}: {}", relay.user,
                         has_token(path)
                             ? "set send.password_file instead of a token"
                             : "set send.token_file or send.token_command to log in with an access token");
    case LoginFault::encryption:
      return "use the relay's port for TLS from the first byte: smtps:// and usually 465; the password is not the matter";
    case LoginFault::account:
      return fmt::format("ask the provider what keeps {} from sending; the password is not the matter",
                         relay.user);
    case LoginFault::host:
      return "let the provider allow the address of this host; the password is not the matter";
    case LoginFault::crowded:
      return "the password is not the matter: the senders use fewer connections by themselves; send.connections "
             "sets how many one sender opens, and other programs may log in as this user too";
    case LoginFault::later:
      return "the password need not be the matter: the senders try it again by themselves; if it goes on, ask the "
             "operator of the relay";
  }
  return secret_hint(relay, path);
}

/// A provider says the same of an address that is not the user's and of an account that it has closed.
std::string sender_hint(const std::string& reply) {
  const std::string other =
      "set send.from to an address that the relay lets this host or user send from, or ask its operator to allow it";
  const auto words = lower_case(reply);
  constexpr std::array<std::string_view, 6> of_account{"suspend", "disabled",   "deactivated",
                                                       "blocked", "terminated", "restricted"};
  const bool names_account =
      std::ranges::any_of(of_account, [&](const auto word) { return words.find(word) != std::string::npos; });
  return names_account
             ? "the provider may have suspended the account: ask it, and no setting here helps. Otherwise " +
                   other
             : other +
                   "; if it took mails of this sender before, ask the provider whether the account is suspended";
}

/// The relay answers, and does not take mail from this host or user.
std::string refusal_hint(const RelayCheck& check, const RelayUrl& relay) {
  switch (check.fault) {
    case RelayFault::wants_login:
      return relay.user.empty()
                 ? fmt::format("name a user in send.relay, as smtp://user@{}, with send.password_file",
                               relay.address())
                 : "use the relay's port for authenticated mail, usually 587";
    case RelayFault::wants_tls:
      return "the relay wants TLS of every client: name it in send.relay as its certificate does, not as a loopback "
             "address, or use smtps:// and its port for TLS, usually 465";
    case RelayFault::busy:
      return "the relay takes no mail now: the senders try it again by themselves; if it goes on, ask its operator";
    case RelayFault::no_smtputf8:
      return "set send.from, and send.reply_to if there is one, to an address in ASCII, or use a relay that offers SMTPUTF8";
    case RelayFault::sender:
      return sender_hint(check.reply);
    default:
      return "ask the operator of the relay whether this host may send mail through it; send.hello_name sets the name in EHLO";
  }
}

}  // namespace

std::vector<carriers::SinkFinding> check_smtp(const config::RelayPath& path,
                                              const mail::ConfiguredMail& mail) {
  const auto configured = read_relays(path);
  const auto sample = sample_of(mail);
  std::vector<carriers::SinkFinding> findings;
  for (const auto& relay : configured.relays) {
    const auto check = RelaySession(relay, configured.options).check(sample ? &*sample : nullptr);
    findings.push_back(judge_relay(relay, check, path));
    if (auto early = judge_acknowledgement(relay, check)) findings.push_back(std::move(*early));
  }
  return findings;
}

std::string_view early_acknowledger(std::string_view greeting) {
  constexpr std::array<std::string_view, 2> servers{"OpenSMTPD", "chasquid"};
  const auto* const found = std::ranges::find_if(
      servers, [&](const auto server) { return greeting.find(server) != std::string_view::npos; });
  return found == servers.end() ? std::string_view() : *found;
}

std::string problem_of(const RelayCheck& check) {
  switch (check.fault) {
    case RelayFault::none:
      break;
    case RelayFault::unreachable:
      return "cannot be reached";
    case RelayFault::silent:
      return "takes the connection, and does not greet";
    case RelayFault::no_smtp:
      return "is no relay";
    case RelayFault::no_starttls:
    case RelayFault::tls:
      return "cannot be used over TLS";
    case RelayFault::certificate:
      return "has a certificate that is not accepted";
    case RelayFault::no_auth:
    case RelayFault::no_mechanism:
      return "does not let the user in";
    case RelayFault::login:
      return check.code < 500 ? "does not let the user in now" : "does not let the user in";
    case RelayFault::wants_login:
      return "wants a login";
    case RelayFault::wants_tls:
      return "wants TLS";
    case RelayFault::busy:
      return "takes no mail now";
    case RelayFault::no_smtputf8:
    case RelayFault::sender:
      return "does not take the sender";
    case RelayFault::refused:
      return "takes no mail from this host";
  }
  return "works";
}

std::string hint_of(const RelayCheck& check, const RelayUrl& relay, const config::RelayPath& path) {
  switch (check.fault) {
    case RelayFault::none:
      return {};
    case RelayFault::unreachable:
      return "start the relay, look whether its name resolves, let the firewall pass its port, or name another relay in send.relay";
    case RelayFault::silent:
      return fmt::format(
          "if the port speaks TLS from the first byte, as 465 does, write smtps:// in place of smtp:// before {} in "
          "send.relay; otherwise ask the operator of the relay why it does not answer this host",
          relay.address());
    case RelayFault::no_smtp:
      return "write the relay's port for mail into send.relay: 587 for smtp://, 465 for smtps://, or 25";
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
      if (has_token(path)) return secret_hint(relay, path);
      return "a relay that takes no password needs an access token: set send.token_file or send.token_command; one "
             "that takes passwords does so at its port for authenticated mail, usually 587";
    case RelayFault::login:
      return login_hint(check, relay, path);
    default:
      return refusal_hint(check, relay);
  }
}

}  // namespace mailroom::smtp
