// Chooses by the scheme of sink.to and of each relay. Kinds that are not built stay in the list, for a hint
// at their option.

#include "carriers/carriers.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "config/key_table.hpp"

namespace mailroom::exec {
extern const carriers::CarrierFunctions exec_carrier;
}
namespace mailroom::http {
extern const carriers::CarrierFunctions http_carrier;
}
namespace mailroom::nats {
extern const carriers::CarrierFunctions nats_carrier;
}
namespace mailroom::amqp {
extern const carriers::CarrierFunctions amqp_carrier;
}
namespace mailroom::smtp {
extern const carriers::RelayFunctions smtp_carrier;
}
namespace mailroom::ses {
extern const carriers::RelayFunctions ses_carrier;
}
namespace mailroom::resend {
extern const carriers::RelayFunctions resend_carrier;
}
namespace mailroom::capture {
extern const carriers::RelayFunctions capture_carrier;
}

namespace mailroom::carriers {

/// Each is defined in the directory of its name, or is empty if the build leaves that out.

namespace {

const std::vector<CarrierKind> kinds_of_lines{
    {exec::exec_carrier, {"exec", {}}},
    {http::http_carrier, {"http", {"https", "http"}, "MAILROOM_HTTP"}},
    {nats::nats_carrier, {"nats", {"nats", "tls"}, "MAILROOM_NATS"}},
    {amqp::amqp_carrier, {"amqp", {"amqp", "amqps"}, "MAILROOM_AMQP"}}};

const std::vector<RelayKind> kinds_of_relays{
    {capture::capture_carrier, {"capture", {"capture"}}},
    {smtp::smtp_carrier, {"smtp", {"smtp", "smtps"}}},
    {ses::ses_carrier, {"ses", {"ses"}, "MAILROOM_HTTP"}},
    {resend::resend_carrier, {"resend", {"resend"}, "MAILROOM_HTTP"}}};

const CarrierKind& kind_of_program() {
  return *std::ranges::find_if(kinds_of_lines, [](const auto& kind) { return kind.schemes.empty(); });
}

/// The schemes of the kinds that are built in.
std::vector<std::string> usable_schemes() {
  std::vector<std::string> schemes;
  for (const auto& kind : kinds_of_lines) {
    if (kind.make == nullptr) continue;
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

bool has_scheme(const KindName& kind, std::string_view scheme) {
  return std::ranges::count(kind.schemes, scheme) > 0;
}

const CarrierKind& kind_of_url(const std::string& url) {
  const auto end = url.find("://");
  const auto scheme = lower_case(url.substr(0, end == std::string::npos ? 0 : end));
  const auto is_asked_for = [&](const KindName& kind) { return has_scheme(kind, scheme); };
  if (std::ranges::any_of(kinds_of_relays, is_asked_for)) {
    throw Error(ExitCode::configuration, fmt::format("sink.to is the URL of a relay: {}://", scheme),
                "mailroom send mails tokens, through the relay that send.relay names");
  }
  const auto kind = std::ranges::find_if(kinds_of_lines, is_asked_for);
  if (kind == kinds_of_lines.end()) {
    // What is before the host may be a password.
    const auto host = url.substr(url.rfind('@') + 1);
    throw Error(ExitCode::configuration,
                scheme.empty() || scheme.find('@') != std::string::npos
                    ? fmt::format("sink.to is no URL: '{}'", shown_text(host))
                    : fmt::format("sink.to has an unknown scheme, '{}'", shown_text(scheme)),
                hint_for_url());
  }
  if (kind->make == nullptr) {
    throw Error(ExitCode::configuration,
                fmt::format("this mailroom is built without the sink {}", kind->name), hint_for_build(*kind));
  }
  return *kind;
}

/// The names of the kinds that the settings ask for.
std::set<std::string_view> used_kinds(const config::Settings& settings, Carries carries) {
  std::set<std::string_view> used;
  if (carries == Carries::lines) {
    if (hands_over(settings)) used.insert(configured_carrier(settings).name);
    return used;
  }
  const auto add = [&](const config::RelayPath& path) {
    for (const auto& target : path.targets)
      used.insert(kind_of_relay(target).name);
  };
  add(settings.send.path);
  for (const auto& profile : settings.profiles)
    add(profile.send.path);
  return used;
}

/// The values that are not defaults, also those of profiles.
std::vector<config::SettingValue> set_values(const config::Settings& settings) {
  auto all = settings.values;
  for (const auto& profile : settings.profiles)
    all.insert(all.end(), profile.values.begin(), profile.values.end());
  std::erase_if(all,
                [](const auto& value) { return value.origin.kind == config::OriginKind::default_value; });
  return all;
}

}  // namespace

std::span<const CarrierKind> carrier_kinds() {
  return kinds_of_lines;
}

std::span<const RelayKind> relay_kinds() {
  return kinds_of_relays;
}

const RelayKind& kind_of_relay(const config::RelayTarget& target) {
  const auto kind = std::ranges::find_if(kinds_of_relays,
                                         [&](const auto& each) { return has_scheme(each, target.scheme); });
  return kind == kinds_of_relays.end() ? *std::ranges::find(kinds_of_relays, "smtp", &RelayKind::name)
                                       : *kind;
}

std::vector<UnreadSetting> unread_settings(const config::Settings& settings, Carries carries) {
  const auto used = used_kinds(settings, carries);
  std::vector<UnreadSetting> unread;
  // What a relay is for is of no matter while mails are captured.
  if (used.empty() || used.contains("capture")) return unread;
  const auto* const section = carries == Carries::lines ? "sink." : "send.";
  for (const auto& value : set_values(settings)) {
    const auto readers = config::find_key(value.key)->readers;
    if (readers.empty() || !value.key.starts_with(section)) continue;
    const auto names = split(readers, ' ');
    if (std::ranges::none_of(names, [&](auto name) { return used.contains(name); }))
      unread.push_back({value, joined(names, " and ")});
  }
  return unread;
}

bool hands_over(const config::Settings& settings) {
  return !settings.sink.to.empty() || !settings.sink.exec.empty();
}

const CarrierKind& configured_carrier(const config::Settings& settings) {
  return settings.sink.to.empty() ? kind_of_program() : kind_of_url(settings.sink.to);
}

}  // namespace mailroom::carriers
