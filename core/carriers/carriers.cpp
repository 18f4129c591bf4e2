// Chooses by the scheme of sink.to. Kinds that are not built stay in the list, for a hint at their option.

#include "carriers/carriers.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "carriers/relay_series.hpp"

namespace mailroom {

/// Each is defined in the directory of its name, or is empty if the build leaves that out.
extern const CarrierFunctions exec_carrier, http_carrier, nats_carrier, amqp_carrier;
extern const CarrierFunctions smtp_carrier, ses_carrier, resend_carrier, capture_carrier;

namespace {

const std::vector<CarrierKind> kinds{
    {exec_carrier, "exec", {}, Carries::lines, "", {"sink.ack_on"}},
    {capture_carrier, "capture", {"capture"}, Carries::mails},
    {smtp_carrier,
     "smtp",
     {"smtp", "smtps"},
     Carries::mails,
     "",
     {"send.password_file", "send.token_file", "send.token_command", "send.ca_file", "send.hello_name",
      "send.plaintext_relay_for_tests"}},
    {http_carrier,
     "http",
     {"https", "http"},
     Carries::lines,
     "MAILROOM_HTTP",
     {"sink.ca_file", "sink.signing_secret_files", "sink.event_source"}},
    {ses_carrier,
     "ses",
     {"ses"},
     Carries::mails,
     "MAILROOM_HTTP",
     {"send.ca_file", "send.ses_credentials_file", "send.ses_configuration_set", "send.ses_endpoint"}},
    {resend_carrier,
     "resend",
     {"resend"},
     Carries::mails,
     "MAILROOM_HTTP",
     {"send.ca_file", "send.resend_key_file", "send.resend_endpoint"}},
    {nats_carrier,
     "nats",
     {"nats", "tls"},
     Carries::lines,
     "MAILROOM_NATS",
     {"sink.ca_file", "sink.password_file", "sink.credentials_file", "sink.stream", "sink.subject",
      "sink.monitor", "sink.event_source"}},
    {amqp_carrier,
     "amqp",
     {"amqp", "amqps"},
     Carries::lines,
     "MAILROOM_AMQP",
     {"sink.ca_file", "sink.password_file", "sink.exchange", "sink.routing_key", "sink.event_source"}}};

const CarrierKind& kind_of_program() {
  return *std::ranges::find_if(kinds, [](const auto& kind) { return kind.schemes.empty(); });
}

/// The schemes of the kinds that are built in.
std::vector<std::string> usable_schemes() {
  std::vector<std::string> schemes;
  for (const auto& kind : kinds) {
    if (kind.make == nullptr || kind.carries != Carries::lines) continue;
    for (const auto scheme : kind.schemes)
      schemes.push_back(fmt::format("{}://", scheme));
  }
  return schemes;
}

/// What a URL that no sink takes can be replaced by.
std::string hint_for_url() {
  const auto schemes = usable_schemes();
  if (schemes.empty()) return "this mailroom is built without the sinks of URLs: use sink.exec";
  return fmt::format("it begins with {}", joined(schemes, ", "));
}

std::string hint_for_build(const CarrierKind& kind) {
  const auto schemes = usable_schemes();
  return fmt::format("build it with -D {}=ON, or use {}", kind.option,
                     schemes.empty() ? "sink.exec" : joined(schemes, ", "));
}

const CarrierKind& kind_of_url(const std::string& url) {
  const auto end = url.find("://");
  const auto scheme = lower_case(url.substr(0, end == std::string::npos ? 0 : end));
  const auto kind = std::ranges::find_if(
      kinds, [&](const auto& each) { return std::ranges::count(each.schemes, scheme) > 0; });
  if (kind == kinds.end()) {
    // What is before the host may be a password.
    const auto host = url.substr(url.rfind('@') + 1);
    throw Error(ExitCode::configuration,
                scheme.empty() || scheme.find('@') != std::string::npos
                    ? fmt::format("sink.to is no URL: '{}'", shown_text(host))
                    : fmt::format("sink.to has an unknown scheme, '{}'", shown_text(scheme)),
                hint_for_url());
  }
  if (kind->carries != Carries::lines) {
    throw Error(ExitCode::configuration, fmt::format("sink.to is the URL of a relay: {}://", scheme),
                "mailroom send mails tokens, through the relay that send.relay names");
  }
  if (kind->make == nullptr) {
    throw Error(ExitCode::configuration,
                fmt::format("this mailroom is built without the sink {}", kind->name), hint_for_build(*kind));
  }
  return *kind;
}

/// The names of the kinds that the settings ask for.
std::set<std::string_view> used_kinds(const Settings& settings, Carries carries) {
  std::set<std::string_view> used;
  if (carries == Carries::lines) {
    if (hands_over(settings)) used.insert(configured_carrier(settings).name);
    return used;
  }
  const auto add = [&](const std::string& relays) {
    if (relays.empty()) return;
    for (const auto& group : relay_groups(relays))
      used.insert(std::ranges::find(kinds, group.kind, &CarrierKind::name)->name);
  };
  add(settings.send.relay);
  for (const auto& profile : settings.profiles)
    add(profile.send.relay);
  return used;
}

/// The values that are not defaults, also those of profiles.
std::vector<SettingValue> set_values(const Settings& settings) {
  auto all = settings.values;
  for (const auto& profile : settings.profiles)
    all.insert(all.end(), profile.values.begin(), profile.values.end());
  std::erase_if(all, [](const auto& value) { return value.origin.kind == OriginKind::default_value; });
  return all;
}

}  // namespace

std::span<const CarrierKind> carrier_kinds() {
  return kinds;
}

const CarrierKind& mail_carrier() {
  static const CarrierKind relays{{make_relays, check_relay_list}, "relays", {}, Carries::mails};
  return relays;
}

MailTraits mail_traits(const Settings& settings) {
  const auto groups = relay_groups(settings.send.relay);
  if (groups.size() != 1) return {};
  auto traits = std::ranges::find(kinds, groups.front().kind, &CarrierKind::name)->traits;
  if (settings.send.rate) traits.together = 1;
  return traits;
}

std::vector<UnreadSetting> unread_settings(const Settings& settings, Carries carries) {
  const auto used = used_kinds(settings, carries);
  std::vector<UnreadSetting> unread;
  // What a relay is for is of no matter while mails are captured.
  if (used.empty() || used.contains("capture")) return unread;
  for (const auto& value : set_values(settings)) {
    std::vector<std::string_view> readers;
    for (const auto& kind : kinds) {
      if (kind.carries == carries && std::ranges::count(kind.keys, value.key) > 0)
        readers.push_back(kind.name);
    }
    const bool is_read = std::ranges::any_of(readers, [&](auto name) { return used.contains(name); });
    if (!readers.empty() && !is_read) unread.push_back({value, joined(readers, " and ")});
  }
  return unread;
}

bool hands_over(const Settings& settings) {
  return !settings.sink.to.empty() || !settings.sink.exec.empty();
}

const CarrierKind& configured_carrier(const Settings& settings) {
  return settings.sink.to.empty() ? kind_of_program() : kind_of_url(settings.sink.to);
}

}  // namespace mailroom
