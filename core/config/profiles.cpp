// How a profile of the configuration file changes the section `send`: its values replace those of the
// section, and a relay of its own begins without what the section says for its relays alone.

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "config/key_table.hpp"
#include "config/settings.hpp"

namespace mailroom::config {
namespace {

constexpr std::string_view relay_key = "send.relay";

bool has_value(const Profile& profile, std::string_view key) {
  return std::ranges::find(profile.values, key, &SettingValue::key) != profile.values.end();
}

bool needs_relay(const SettingValue& value) {
  return find_key(value.key)->needs_relay();
}

void require_relay(const Profile& profile) {
  if (has_value(profile, relay_key)) return;
  const auto lonely = std::ranges::find_if(profile.values, needs_relay);
  if (lonely == profile.values.end()) return;
  throw Error(ExitCode::configuration,
              fmt::format("{} ({}) needs a relay of the profile", lonely->name(), describe(lonely->origin)),
              fmt::format("name it: profiles.{}.relay", profile.name));
}

/// What `send` says for its own relays alone is not set for those of the profile.
void unset_for_other_relays(Profile& profile) {
  for (const auto& entry : key_table()) {
    if (!entry.is_of_relay() || has_value(profile, entry.key)) continue;
    profile.values.push_back(default_value_of(entry));
    profile.values.back().profile = profile.name;
  }
}

std::vector<SettingValue> merged_values(const Settings& settings, const Profile& profile) {
  auto values = settings.values;
  for (const auto& value : profile.values)
    *std::ranges::find(values, value.key, &SettingValue::key) = value;
  return values;
}

/// Whose relays these are: one lane, whose records have one name, takes the mails of profiles with equal
/// paths.
std::string first_with(RelayPath path, const std::string& name, const Settings& settings) {
  const auto is_same = [&](const RelayPath& other) {
    path.profile = other.profile;
    return path == other;
  };
  if (is_same(settings.send.path)) return settings.send.path.profile;
  const auto first =
      std::ranges::find_if(settings.profiles, [&](const Profile& other) { return is_same(other.send.path); });
  return first == settings.profiles.end() ? name : first->send.path.profile;
}

}  // namespace

Profile finished_profile(Profile profile, const Settings& settings) {
  require_relay(profile);
  const auto is_overridden = [&](std::string_view key) {
    return setting_of(settings, key).origin.kind == OriginKind::flag;
  };
  std::erase_if(profile.values, [&](const SettingValue& value) {
    return is_overridden(needs_relay(value) ? relay_key : std::string_view(value.key));
  });
  const bool has_relay = has_value(profile, relay_key);
  if (has_relay) unset_for_other_relays(profile);
  Settings own;
  own.values = merged_values(settings, profile);
  store_values(own);
  if (has_relay) own.send.path.profile = first_with(own.send.path, profile.name, settings);
  profile.send = std::move(own.send);
  return profile;
}

Settings with_profile(const Settings& settings, std::string_view name) {
  Settings changed;
  static_cast<ProfiledSettings&>(changed) = settings;
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
  changed.values = merged_values(settings, *profile);
  return changed;
}

}  // namespace mailroom::config
