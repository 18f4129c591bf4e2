// What doctor sees of relays: connects to each, logs in, and names the sender.

#include <fmt/format.h>
#include <optional>

#include "carriers/smtp/carrier.hpp"
#include "carriers/smtp/configured_relays.hpp"
#include "carriers/smtp/hint.hpp"
#include "mail/configured_mail.hpp"
#include "mail/message.hpp"

namespace mailroom {
namespace {

SinkFinding judge_relay(const RelayUrl& relay, const RelayCheck& check, const Settings& settings) {
  using Level = SinkFinding::Level;
  if (check.fault != RelayFault::none) {
    const auto code = check.code == 0 ? std::string() : fmt::format("{} ", check.code);
    return {.level = Level::failure,
            .reason = fmt::format("{} {}: {}{}", relay.address(), problem_of(check), code, check.reply),
            .hint = hint_of(check, relay, settings),
            .endpoint = relay.address()};
  }
  const auto user = relay.user.empty() ? std::string("without a user") : "as " + relay.user;
  const auto* const way = check.encrypted       ? "over TLS"
                          : relay.is_loopback() ? "without TLS, since it is on this host"
                                                : "without TLS, as send.plaintext_relay_for_tests says";
  SinkFinding finding{
      .level = Level::fine,
      .reason = fmt::format("{} answers {}, {}, to EHLO {}", relay.address(), way, user, check.hello_name),
      .endpoint = relay.address()};
  if (!check.encrypted && !relay.is_loopback()) {
    finding.level = Level::warning;
    finding.hint = "anybody on the way can read the links: remove the setting outside of a test set-up";
  }
  return finding;
}

/// The envelope of a mail of the configured sender, to nobody.
std::optional<Envelope> sample_of(const Settings& settings) {
  const auto mail = parse_configured_mail(settings);
  if (!mail.from) return std::nullopt;
  const auto utf8_sender = MessageBuilder(*mail.from, mail.reply_to, mail.headers).utf8_sender();
  return Envelope{.from = mail.from->address.text(),
                  .to = {},
                  .needs_smtputf8 = !utf8_sender.empty(),
                  .utf8_sender = utf8_sender};
}

}  // namespace

std::vector<SinkFinding> check_smtp(const Settings& settings) {
  const auto configured = read_relays(settings);
  const auto sample = sample_of(settings);
  std::vector<SinkFinding> findings;
  for (const auto& relay : configured.relays) {
    const auto check = Relay(relay, configured.options).check(sample ? &*sample : nullptr);
    findings.push_back(judge_relay(relay, check, settings));
  }
  return findings;
}

}  // namespace mailroom
