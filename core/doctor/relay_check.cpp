// Does each SMTP relay take mail from this host?

#include <algorithm>
#include <fmt/format.h>

#include "base/text.hpp"
#include "carriers/smtp/configured_relays.hpp"
#include "doctor/relay_hint.hpp"
#include "doctor/secret_files.hpp"
#include "doctor/subject.hpp"
#include "mail/configured_mail.hpp"
#include "mail/message.hpp"
#include "status/delivery_status.hpp"
#include "status/session_text.hpp"

namespace mailroom {
namespace {

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
  return failure(fmt::format("{} {}: {}{}", relay.address(), problem_of(check), code, check.reply), {},
                 hint_of(check, relay, settings));
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

/// What a relay says to a recipient or to a message, a check cannot see: the senders have. It may take mails
/// again, and no sender has tried since.
Finding judge_senders_view(const UnavailableSink& sink) {
  const auto again = sink.probe_in.count() == 0 ? std::string("as soon as one runs and a mail is due")
                                                : "in " + age_text(sink.probe_in);
  return failure(
      fmt::format(
          "{} answers this check; before, it has taken no mail of the senders for {}, after {}, the last: {}",
          sink.name, age_text(sink.lasts), counted(sink.failures, "failure"), sink.reason),
      {},
      fmt::format(
          "it may take mails again: the senders try it {}, and mailroom send --to ADDRESS sends one for trial; "
          "if that is refused, the relay refuses recipients or messages, which this check does not see: ask its "
          "operator",
          again));
}

}  // namespace

Findings check_relays(Subject& subject) {
  if (!subject.settings_complete) return {not_checked("the configuration cannot be read")};
  const auto& settings = *subject.settings;
  if (settings.send.relay.empty()) return {fine("not configured")};
  Findings findings;
  if (!settings.send.password_file.empty())
    findings =
        judge_permissions("password", settings.send.password_file, settings.signing.allow_readable_key);
  if (!settings.send.token_file.empty()) {
    for (auto& finding :
         judge_permissions("token", settings.send.token_file, settings.signing.allow_readable_key))
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
