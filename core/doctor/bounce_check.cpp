// How does what becomes of a mail come back from each relay, and does something read it? Most providers
// replace the envelope sender, and tell by events only.

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <optional>

#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "bounce/provider.hpp"
#include "doctor/subject.hpp"
#include "mail/configured_mail.hpp"

namespace mailroom::doctor {
namespace {

/// By which way.
struct WayBack {
  std::string words;   ///< `Postmark tells it by events`
  std::string gap{};   ///< what is not set for it; empty if nothing is missing
  std::string remedy;  ///< what sets it, or reads what comes
};

/// False: no reader is connected, and none has recorded anything. nullopt: that cannot be seen.
std::optional<bool> has_reader(Subject& subject) {
  if (!subject.connection || !subject.schema_usable || !subject.has_tables) return std::nullopt;
  auto& connection = *subject.connection;
  const auto seen = connection.run(
      "SELECT has_any_column_privilege('mailroom_bounces', 'SELECT') AS may_read, EXISTS (SELECT FROM pg_stat_activity "
      "WHERE datname = current_database() AND starts_with(application_name, 'mailroom bounce')) AS is_connected");
  if (seen[0].flag("is_connected")) return true;
  if (!seen[0].flag("may_read")) return std::nullopt;
  return connection.run("SELECT EXISTS (SELECT 1 FROM mailroom_bounces)").value<bool>();
}

bool has_secret(const config::Settings& settings, std::string_view provider) {
  const auto& bounce = settings.bounce;
  if (provider == "resend") return !bounce.resend_secret_files.empty();
  const auto found = bounce.secret_files.find(provider);
  return found != bounce.secret_files.end() && !found->second.empty();
}

/// The setting that says who may post the events of a provider.
std::string setting_of_events(const bounce::Provider& provider) {
  return fmt::format("bounce.{}_{}_files", provider.name, provider.name == "sendgrid" ? "key" : "secret");
}

WayBack by_events(const config::Settings& settings, const bounce::Provider& provider) {
  WayBack way{.words = fmt::format("{} tells by events what came back", provider.title), .remedy = {}};
  if (provider.name == "ses") {
    way.remedy =
        "name its topic in bounce.sns_topics and run mailroom bounce --listen, or mailroom bounce --sqs with its "
        "queue: docs/bounces.md";
    return way;
  }
  const auto setting = setting_of_events(provider);
  if (!has_secret(settings, provider.name)) way.gap = setting;
  way.remedy =
      fmt::format("set {}, run mailroom bounce --listen, and let {} post its events there: docs/bounces.md",
                  setting, provider.title);
  return way;
}

WayBack by_mails(const config::Settings& settings) {
  const auto& address = settings.send.bounce_address;
  const auto from = mail::parse_configured_mail(settings).from;
  return {
      .words = !address.empty() ? "bounces come back as mails to " + printable(address)
               : from           ? "bounces come back as mails to " + from->address.text()
                                : std::string("bounces come back as mails to the sender"),
      .remedy =
          "let the mail server hand them to mailroom bounce, best with send.bounce_address; if a provider is behind the "
          "relay, name it in send.provider: docs/bounces.md"};
}

/// The host of a relay's URL, if it is one: another check says what is wrong with it.
std::string host_of(const std::string& url) {
  auto host = url.substr(url.find("://") == std::string::npos ? 0 : url.find("://") + 3);
  host = host.substr(host.rfind('@') == std::string::npos ? 0 : host.rfind('@') + 1);
  return host.substr(0, host.find_first_of(":/"));
}

WayBack way_back(const config::Settings& settings, const config::RelayTarget& target) {
  if (target.scheme == "ses" || target.scheme == "resend")
    return by_events(settings, *bounce::find_provider(target.scheme));
  const auto& named = settings.send.path.provider;
  const auto* const provider =
      named.empty() ? bounce::provider_of_host(host_of(target.url)) : bounce::find_provider(named);
  if (provider == nullptr) return by_mails(settings);
  if (provider->header == nullptr)
    return {.words = fmt::format("events of {} show whose mail they are about only if its API took it",
                                 provider->title),
            .gap = fmt::format("{}:// in send.relay", provider->name),
            .remedy = fmt::format("set send.relay to {}://: docs/providers.md", provider->name)};
  return by_events(settings, *provider);
}

Finding judge_way(const config::Settings& settings, const config::RelayTarget& target,
                  std::optional<bool> is_read) {
  const auto way = way_back(settings, target);
  const auto text = fmt::format("{}: {}", printable(without_url_passwords(target.url)), way.words);
  if (!way.gap.empty()) return warning(fmt::format("{}, and {} is not set", text, way.gap), {}, way.remedy);
  if (is_read == false) return warning(text + ", and nothing has read any", {}, way.remedy);
  return fine(text);
}

Findings ways_of(const config::Settings& settings, std::optional<bool> is_read) {
  Findings findings;
  for (const auto& target : settings.send.path.targets) {
    if (target.scheme != "capture") findings.push_back(judge_way(settings, target, is_read));
  }
  return findings;
}

}  // namespace

Findings check_bounces(Subject& subject) {
  if (!subject.settings_complete) return {not_checked("the configuration cannot be read")};
  const auto& settings = *subject.settings;
  const auto is_read = has_reader(subject);
  auto findings = ways_of(settings, is_read);
  for (const auto& profile : settings.profiles) {
    // The others use those of `send`.
    if (profile.send.path.profile.empty()) continue;
    auto own = of_profile(settings, profile.name,
                          [&](const config::Settings& changed) { return ways_of(changed, is_read); });
    std::ranges::move(own, std::back_inserter(findings));
  }
  return or_fine(std::move(findings), "not configured");
}

}  // namespace mailroom::doctor
