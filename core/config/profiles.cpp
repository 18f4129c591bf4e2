// How a profile of the configuration file changes the section `send`: one with a relay of its own gets no
// password of another.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "config/key_table.hpp"
#include "config/settings.hpp"

namespace mailroom {
namespace {

constexpr std::string_view relay_key = "send.relay";
/// What is sent to one relay, and to no other.
constexpr std::array<std::string_view, 9> login_keys{
    "send.password_file", "send.token_file",           "send.token_command",
    "send.ca_file",       "send.ses_credentials_file", "send.ses_configuration_set",
    "send.ses_endpoint",  "send.resend_key_file",      "send.resend_endpoint"};

/// True for a relay, and for what says how to talk to it.
bool is_about_relay(const SettingValue& value) {
  return value.key == relay_key || value.key == "send.hello_name" || value.key == "send.throttled_by" ||
         std::ranges::find(login_keys, value.key) != login_keys.end();
}

bool has_value(const Profile& profile, std::string_view key) {
  return std::ranges::find(profile.values, key, &SettingValue::key) != profile.values.end();
}

void require_relay(const Profile& profile) {
  if (has_value(profile, relay_key)) return;
  const auto lonely = std::ranges::find_if(profile.values, is_about_relay);
  if (lonely == profile.values.end()) return;
  throw Error(ExitCode::configuration,
              fmt::format("{} ({}) needs a relay of the profile", lonely->name(), describe(lonely->origin)),
              fmt::format("name it: profiles.{}.relay", profile.name));
}

/// A relay of the profile gets no password of `send`.
void forget_login(Profile& profile, SendSettings& send) {
  send.password_file.clear();
  send.token_file.clear();
  send.token_command.clear();
  send.ca_file.clear();
  send.ses_credentials_file.clear();
  send.ses_configuration_set.clear();
  send.ses_endpoint.clear();
  send.resend_key_file.clear();
  send.resend_endpoint.clear();
  for (const auto key : login_keys) {
    if (has_value(profile, key)) continue;
    profile.values.push_back(default_value_of(*find_key(key)));
    profile.values.back().profile = profile.name;
  }
}

}  // namespace

Profile finished_profile(Profile profile, const Settings& settings) {
  require_relay(profile);
  const auto is_overridden = [&](std::string_view key) {
    return setting_of(settings, key).origin.kind == OriginKind::flag;
  };
  std::erase_if(profile.values, [&](const SettingValue& value) {
    return is_overridden(is_about_relay(value) ? relay_key : std::string_view(value.key));
  });
  auto changed = settings;
  if (has_value(profile, relay_key)) {
    forget_login(profile, changed.send);
    changed.send.relay_profile = profile.name;
  }
  for (const auto& value : profile.values) {
    if (value.origin.kind != OriginKind::default_value) find_key(value.key)->target.store(value, changed);
  }
  profile.send = std::move(changed.send);
  return profile;
}

Settings with_profile(const Settings& settings, std::string_view name) {
  auto changed = settings;
  if (name.empty() || name == default_profile) return changed;
  const auto profile = std::ranges::find(settings.profiles, name, &Profile::name);
  if (profile == settings.profiles.end()) {
    std::vector<std::string> names{std::string(default_profile)};
    std::ranges::transform(settings.profiles, std::back_inserter(names), &Profile::name);
    throw Error(ExitCode::configuration, fmt::format("there is no profile '{}'", shown_text(name)),
                settings.profiles.empty() ? "the section profiles of the configuration file has them"
                                          : fmt::format("profiles: {}", joined(names, ", ")));
  }
  changed.send = profile->send;
  for (const auto& value : profile->values)
    *std::ranges::find(changed.values, value.key, &SettingValue::key) = value;
  return changed;
}

}  // namespace mailroom
