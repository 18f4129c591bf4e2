// Merges defaults, file, environment and flags in this order, and refuses values that exclude each other.

#include "config/settings.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <stdexcept>
#include <unistd.h>

#include "base/error.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "config/key_table.hpp"
#include "config/parse_value.hpp"
#include "config/yaml_document.hpp"

namespace mailroom::config {
namespace {

constexpr auto local_file = "mailroom.yaml";
constexpr auto system_file = MAILROOM_SYSTEM_CONFIG;
constexpr auto file_variable = "MAILROOM_CONFIG";
constexpr std::string_view prefix = "MAILROOM_";
constexpr std::string_view inline_key = "signing.key";
constexpr std::string_view key_file = "signing.key_file";
constexpr std::string_view previous_keys = "signing.previous_key_files";

/// One for each entry of the key table, in its order.
using SettingValues = std::vector<SettingValue>;

/// An empty variable counts as unset.
std::string lookup(const EnvironmentVariables& environment, std::string_view name) {
  const auto found = environment.find(std::string(name));
  return found == environment.end() ? std::string{} : found->second;
}

YamlFile read_named_file(const std::string& path, const std::string& named_by) {
  auto file = read_yaml_file(path);
  if (!file) {
    throw Error(ExitCode::configuration, fmt::format("there is no configuration file {}", path),
                "it is named by " + named_by);
  }
  return std::move(*file);
}

std::optional<YamlFile> find_file(const Overrides& overrides, const EnvironmentVariables& environment) {
  if (overrides.file) return read_named_file(*overrides.file, "--config");
  if (const auto path = lookup(environment, file_variable); !path.empty()) {
    return read_named_file(path, file_variable);
  }
  // Run as another user, for example with sudo, a command starts in a directory that is closed to it.
  auto file = access(".", X_OK) == 0 ? read_yaml_file(local_file) : std::nullopt;
  return file ? std::move(file) : read_yaml_file(system_file);
}

/// Without the line end that a file, a secret of a container or $'…' has at its end, and no value needs.
std::size_t length_of_line(std::string_view text) {
  return text.find_last_not_of("\r\n") + 1;
}

SettingValue without_line_end(SettingValue value) {
  value.text.resize(length_of_line(value.text));
  if (!value.items.empty()) value.items.back().resize(length_of_line(value.items.back()));
  return value;
}

SettingValue& value_of(SettingValues& values, std::string_view key) {
  return *std::ranges::find(values, key, &SettingValue::key);
}

/// Throws if a file with a mode beyond 0600 contains a current or previous key, even if the key is
/// overridden.
void check_mode(const YamlFile& file) {
  if ((file.mode & ~0600U) == 0) return;
  for (const auto& value : file.values) {
    const bool is_current = value.key == inline_key;
    if (!is_current && (value.key != previous_keys || !value.is_secret)) continue;
    throw Error(
        ExitCode::configuration,
        fmt::format("{}: {} in a file of mode {:04o}, which must be 0600", value.origin.where,
                    is_current ? "signing.key is" : "signing.previous_key_files has a key", file.mode),
        fmt::format("chmod 600 {}, or {}", file.path,
                    is_current ? "use signing.key_file" : "name the file of each key"));
  }
}

void apply_file(SettingValues& values, const YamlFile& file) {
  check_mode(file);
  for (const auto& value : file.values)
    value_of(values, value.key) = without_line_end(value);
}

void apply_environment(SettingValues& values, const EnvironmentVariables& environment) {
  for (const auto& entry : key_table()) {
    const auto text = lookup(environment, entry.environment);
    if (length_of_line(text) == 0) continue;
    value_of(values, entry.key) = value_from(entry, std::string_view(text).substr(0, length_of_line(text)),
                                             {OriginKind::environment, std::string(entry.environment)});
  }
}

void apply_flags(SettingValues& values, const std::vector<Overrides::Flag>& flags) {
  for (const auto& flag : flags) {
    const auto* entry = find_key(flag.key);
    if (entry == nullptr) {
      throw Error(ExitCode::usage,
                  fmt::format("{} sets {}, which is not a configuration key", flag.name, flag.key),
                  hint_for_unknown(flag.key));
    }
    value_of(values, flag.key) = value_from(*entry, flag.text, {OriginKind::flag, flag.name});
  }
}

/// Two keys that set the same thing: the one with the weaker origin is reset to its default. Throws if both
/// have the same origin.
void drop_overridden(SettingValues& values, std::string_view first, std::string_view second) {
  auto& one = value_of(values, first);
  auto& other = value_of(values, second);
  if (one.origin.kind == other.origin.kind && one.origin.kind != OriginKind::default_value) {
    throw Error(one.origin.kind == OriginKind::flag ? ExitCode::usage : ExitCode::configuration,
                fmt::format("{} ({}) and {} ({}) are both given", first, describe(one.origin), second,
                            describe(other.origin)),
                "give one of the two");
  }
  auto& weaker = one.origin.kind < other.origin.kind ? one : other;
  weaker = default_value_of(*find_key(weaker.key));
}

/// Throws if values exclude each other.
void check_together(const Settings& settings) {
  if (settings.collect.lines_per_claim == 1 || settings.collect.batch_limit.is_fixed()) return;
  refuse(setting_of(settings, "collect.lines_per_claim"), "1 if collect.batch_limit is a range",
         "a range lets lines grow with the load; for many short lines per claim, give one batch_limit");
}

}  // namespace

EnvironmentVariables process_environment() {
  EnvironmentVariables environment;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    if (!text.starts_with(prefix) && text.substr(0, equals) != "NO_COLOR") continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

void require_keys(const std::vector<std::string_view>& keys, const Settings& settings) {
  std::vector<std::string> missing;
  std::string_view first;
  for (const auto key : keys) {
    const auto& value = setting_of(settings, key);
    if (!value.text.empty()) continue;
    if (missing.empty()) first = key;
    missing.push_back(value.name());
  }
  if (!missing.empty()) refuse_missing(missing, first);
}

void refuse_missing(const std::vector<std::string>& names, std::string_view first) {
  throw Error(ExitCode::configuration,
              fmt::format("{} {} not set", joined(names, ", "), names.size() == 1 ? "is" : "are"),
              fmt::format("for example {}: {}; mailroom.yaml.example describes each", names.front(),
                          find_key(first)->example));
}

Settings with_queue_defaults(const Settings& settings, const std::string& queue,
                             const std::string& batch_limit, const std::string& batch_timeout) {
  auto defined = settings;
  const auto define = [&](const char* key, const std::string& text) {
    auto& value = value_of(defined.values, key);
    if (text.empty() || value.origin.kind != OriginKind::default_value) return;
    const auto& entry = *find_key(key);
    value = value_from(entry, text, {OriginKind::default_value, "queue " + queue});
    entry.target.store(value, defined);
  };
  define("collect.batch_limit", batch_limit);
  define("collect.batch_timeout", batch_timeout);
  check_together(defined);
  return defined;
}

const std::string& only_queue(const Settings& settings) {
  if (settings.collect.queues.size() == 1) return settings.collect.queues.front();
  throw Error(ExitCode::usage,
              fmt::format("collect.queue names {} queues, and this command needs one",
                          settings.collect.queues.size()),
              "choose it with --queue " + settings.collect.queues.front());
}

const SettingValue& setting_of(const Settings& settings, std::string_view key) {
  const auto found = std::ranges::find(settings.values, key, &SettingValue::key);
  if (found == settings.values.end()) throw std::logic_error("no such setting: " + std::string(key));
  return *found;
}

std::string SettingValue::name() const {
  if (!role.empty()) return fmt::format("submission.roles.{}.{}", role, key.substr(key.find('.') + 1));
  return name_in_profile(profile, key);
}

void store_values(Settings& settings) {
  for (const auto& value : settings.values) {
    const bool is_given = value.origin.kind != OriginKind::default_value || !value.text.empty();
    if (is_given) find_key(value.key)->target.store(value, settings);
  }
  settings.send.path.allows_readable_files = settings.signing.allow_readable_key;
}

Settings load_settings(const Overrides& overrides, const EnvironmentVariables& environment, FileUse use) {
  Settings settings;
  auto& values = settings.values;
  std::vector<Profile> profiles;
  std::vector<SubmissionRole> roles;
  std::ranges::transform(key_table(), std::back_inserter(values), default_value_of);
  if (auto file = use == FileUse::read ? find_file(overrides, environment) : std::nullopt) {
    apply_file(values, *file);
    settings.file = file->path;
    profiles = std::move(file->profiles);
    roles = std::move(file->submission_roles);
  }
  apply_environment(values, environment);
  apply_flags(values, overrides.flags);
  drop_overridden(values, inline_key, key_file);
  drop_overridden(values, "sink.to", "sink.exec");
  store_values(settings);
  check_together(settings);
  for (auto& profile : profiles) {
    for (auto& value : profile.values)
      value = without_line_end(value);
    settings.profiles.push_back(finished_profile(std::move(profile), settings));
  }
  for (auto& role : roles) {
    for (auto& value : role.values)
      value = without_line_end(value);
    settings.submission_roles.push_back(finished_role(std::move(role), settings));
  }
  return settings;
}

}  // namespace mailroom::config
