#include <fmt/format.h>

#include "doctor/secret_files.hpp"
#include "doctor/subject.hpp"
#include "smtp/configured_relays.hpp"

namespace mailroom {
namespace {

std::string problem_of(RelayFault fault) {
  switch (fault) {
    case RelayFault::none:
      break;
    case RelayFault::unreachable:
      return "cannot be reached";
    case RelayFault::no_starttls:
    case RelayFault::tls:
      return "cannot be used over TLS";
    case RelayFault::certificate:
      return "has a certificate that is not accepted";
    case RelayFault::no_auth:
    case RelayFault::login:
      return "does not let the user in";
    case RelayFault::refused:
      return "takes no mail from this host";
  }
  return "works";
}

std::string hint_of(RelayFault fault, const RelayUrl& relay, const Settings& settings) {
  switch (fault) {
    case RelayFault::none:
      break;
    case RelayFault::unreachable:
      return "start the relay, let the firewall pass its port, or name another relay in send.relay";
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
    case RelayFault::login:
      return fmt::format("write the password of {} into {}, and reload the senders with SIGHUP", relay.user,
                         settings.send_password_file);
    case RelayFault::refused:
      return "ask the operator of the relay whether this host may send mail through it";
  }
  return {};
}

Finding judge_relay(const RelayUrl& relay, const RelayCheck& check, const Settings& settings) {
  if (check.fault == RelayFault::none) {
    const auto user = relay.user.empty() ? std::string("without a user") : "as " + relay.user;
    return fine(fmt::format("{} answers {}, {}", relay.address(),
                            check.encrypted ? "over TLS" : "without TLS, since it is on this host", user));
  }
  const auto code = check.code == 0 ? std::string() : fmt::format("{} ", check.code);
  return failure(fmt::format("{} {}: {}{}", relay.address(), problem_of(check.fault), code, check.reply), {},
                 hint_of(check.fault, relay, settings));
}

}  // namespace

Findings check_relays(Subject& subject) {
  if (!subject.settings_complete) return {not_checked("the configuration cannot be read")};
  const auto& settings = *subject.settings;
  if (settings.send_relay.empty()) return {fine("not configured")};
  Findings findings;
  if (!settings.send_password_file.empty())
    findings = judge_permissions("password", settings.send_password_file, settings.allow_readable_key);
  if (any_failure(findings)) return findings;
  const auto configured = read_relays(settings);
  for (const auto& relay : configured.relays)
    findings.push_back(judge_relay(relay, Relay(relay, configured.options).check(), settings));
  return findings;
}

}  // namespace mailroom
