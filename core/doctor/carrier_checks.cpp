// Do relays and other sinks take what is sent to them from this host? Each carrier knows what to look at.

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "base/text.hpp"
#include "base/wording.hpp"
#include "carriers/relay_series.hpp"
#include "config/key_table.hpp"
#include "doctor/finding.hpp"
#include "doctor/subject.hpp"
#include "mail/configured_mail.hpp"
#include "status/delivery_status.hpp"
#include "status/queue_sessions.hpp"

namespace mailroom::doctor {
namespace {

std::vector<status::UnavailableSink> read_unavailable(Subject& subject) {
  if (!subject.connection || !subject.schema_usable || !subject.has_tables) return {};
  return subject.connection->transact(
      [](pqxx::work& transaction) { return status::read_unavailable_sinks(transaction); });
}

/// What a relay says to a recipient or to a message, a check cannot see: the senders have. It may take mails
/// again, and no sender has tried since.
Finding judge_senders_view(const status::UnavailableSink& sink) {
  const auto again = sink.probe_in.count() == 0 ? std::string("as soon as one runs and a mail is due")
                                                : "in " + status::age_text(sink.probe_in);
  return failure(
      fmt::format(
          "{} answers this check; before, it has taken no mail of the senders for {}, after {}, the last: {}",
          sink.name, status::age_text(sink.lasts), counted(sink.failures, "failure"), sink.reason),
      {},
      fmt::format(
          "it may take mails again: the senders try it {}, and mailroom send --to ADDRESS sends one for trial; "
          "if that is refused, the relay refuses recipients or messages, which this check does not see: ask its "
          "operator",
          again));
}

/// Settings without effect, for whoever expects one.
void add_unread(Findings& findings, const config::Settings& settings, carriers::Carries carries) {
  for (const auto& [value, readers] : carriers::unread_settings(settings, carries)) {
    findings.push_back(warning(fmt::format("{} is set (from {}), which has an effect with {} only",
                                           value.name(), value.origin.where, readers),
                               {},
                               fmt::format("remove it, or see whether {} names what you mean",
                                           carries == carriers::Carries::lines ? "sink.to" : "send.relay")));
  }
}

/// The files with secrets of the relays that `send` names.
Findings check_secret_files(const config::Settings& settings) {
  Findings findings;
  for (const auto& entry : config::key_table()) {
    if (!entry.is_of_relay() || !entry.is_secret_file) continue;
    for (const auto& file : config::files_of(entry, config::setting_of(settings, entry.key)))
      std::ranges::move(
          judge_permissions(std::string(entry.content), file, settings.send.path.allows_readable_files),
          std::back_inserter(findings));
  }
  return findings;
}

/// The relays of one profile.
Findings check_relays_of(const config::Settings& settings,
                         const std::vector<status::UnavailableSink>& unavailable) {
  auto findings = check_secret_files(settings);
  if (any_failure(findings)) return findings;
  for (const auto& found :
       carriers::check_relay_list(settings.send.path, mail::parse_configured_mail(settings))) {
    findings.push_back(finding_of(found));
    const auto known = std::ranges::find(unavailable, found.endpoint, &status::UnavailableSink::name);
    if (found.level != carriers::SinkFinding::Level::failure && known != unavailable.end())
      findings.push_back(judge_senders_view(*known));
  }
  return findings;
}

}  // namespace

Findings check_relays(Subject& subject) {
  if (!subject.settings_complete) return {not_checked("the configuration cannot be read")};
  const auto& settings = *subject.settings;
  const bool has_own = std::ranges::any_of(
      settings.profiles, [](const auto& profile) { return !profile.send.path.profile.empty(); });
  const bool has_relay = !settings.send.path.targets.empty();
  if (!has_relay && !has_own) return {fine("not configured")};
  const auto unavailable = read_unavailable(subject);
  Findings findings;
  if (has_relay) findings = check_relays_of(settings, unavailable);
  for (const auto& profile : settings.profiles) {
    // The others use those of `send`.
    if (profile.send.path.profile.empty()) continue;
    auto own = of_profile(settings, profile.name, [&](const config::Settings& changed) {
      return check_relays_of(changed, unavailable);
    });
    std::ranges::move(own, std::back_inserter(findings));
  }
  add_unread(findings, settings, carriers::Carries::mails);
  return findings;
}

Finding finding_of(const carriers::SinkFinding& found) {
  switch (found.level) {
    case carriers::SinkFinding::Level::fine:
      break;
    case carriers::SinkFinding::Level::warning:
      return warning(found.reason, found.fix, found.hint);
    case carriers::SinkFinding::Level::failure:
      return failure(found.reason, found.fix, found.hint);
  }
  auto finding = fine(found.reason);
  finding.hint = found.hint;
  return finding;
}

Findings check_sink(Subject& subject) {
  if (!subject.settings_complete) return {not_checked("the configuration cannot be read")};
  const auto& settings = *subject.settings;
  if (!carriers::hands_over(settings)) return {fine("not configured")};
  Findings findings;
  for (const auto& found : carriers::configured_carrier(settings).check(settings))
    findings.push_back(finding_of(found));
  add_unread(findings, settings, carriers::Carries::lines);
  return findings;
}

}  // namespace mailroom::doctor
