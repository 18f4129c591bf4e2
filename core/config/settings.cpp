#include "config/settings.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <stdexcept>
#include <unistd.h>

#include "base/error.hpp"
#include "config/key_table.hpp"
#include "config/yaml_file.hpp"

namespace mailroom {
namespace {

constexpr auto local_file = "mailroom.yaml";
constexpr auto system_file = "/etc/mailroom/mailroom.yaml";
constexpr auto file_variable = "MAILROOM_CONFIG";
constexpr std::string_view prefix = "MAILROOM_";
constexpr std::string_view inline_key = "signing.key";
constexpr std::string_view key_file = "signing.key_file";
constexpr std::string_view previous_keys = "signing.previous_key_files";

/// One for each entry of the key table, in its order.
using RawValues = std::vector<RawValue>;

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (true) {
    const auto comma = text.find(',');
    auto item = text.substr(0, comma);
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    item = item.substr(0, item.find_last_not_of(' ') + 1);
    items.emplace_back(item);
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

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
  auto file = read_yaml_file(local_file);
  return file ? std::move(file) : read_yaml_file(system_file);
}

void set_text(RawValue& value, const KeyEntry& entry, const std::string& text, Origin origin) {
  value.text = text;
  value.items = entry.is_list ? split_list(text) : std::vector<std::string>{};
  value.origin = std::move(origin);
  value.directory.clear();
}

RawValue default_of(const KeyEntry& entry) {
  RawValue value;
  value.key = entry.key;
  value.text = entry.default_text;
  value.origin.where = "default";
  value.is_secret = entry.is_secret;
  return value;
}

RawValues defaults() {
  RawValues values;
  std::ranges::transform(key_table(), std::back_inserter(values), default_of);
  return values;
}

/// Throws if a file with a mode beyond 0600 contains a current or previous key, even if the key is
/// overridden.
void check_mode(const YamlFile& file) {
  if ((file.mode & ~0600U) == 0) return;
  for (const auto& [name, value] : file.values) {
    const bool holds_key =
        name == inline_key || (name == previous_keys && std::ranges::any_of(value.items, is_key_text));
    if (!holds_key) continue;
    throw Error(ExitCode::configuration,
                fmt::format("{}:{}:{}: {} in a file of mode {:04o}, which must be 0600", file.path,
                            value.line, value.column,
                            name == inline_key ? "signing.key is" : "signing.previous_key_files has a key",
                            file.mode),
                fmt::format("chmod 600 {}, or {}", file.path,
                            name == inline_key ? "use signing.key_file" : "name the file of each key"));
  }
}

void apply_file(RawValues& values, const YamlFile& file) {
  check_mode(file);
  for (auto& value : values) {
    const auto given = file.values.find(value.key);
    if (given == file.values.end()) continue;
    value.text = given->second.text;
    value.items = given->second.items;
    value.origin = {OriginKind::file,
                    fmt::format("{}:{}:{}", file.path, given->second.line, given->second.column)};
    value.directory = std::filesystem::path(file.path).parent_path();
  }
}

void apply_environment(RawValues& values, const EnvironmentVariables& environment) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& entry = key_table()[i];
    const auto text = lookup(environment, entry.environment);
    if (text.empty()) continue;
    set_text(values[i], entry, text, {OriginKind::environment, std::string(entry.environment)});
  }
}

void apply_flags(RawValues& values, const std::vector<Overrides::Flag>& flags) {
  for (const auto& flag : flags) {
    const auto* entry = find_key(flag.key);
    if (entry == nullptr) {
      throw Error(ExitCode::usage,
                  fmt::format("{} sets {}, which is not a configuration key", flag.name, flag.key),
                  hint_for_unknown(flag.key));
    }
    const auto at = static_cast<std::size_t>(entry - key_table().data());
    set_text(values[at], *entry, flag.text, {OriginKind::flag, flag.name});
  }
}

RawValue& value_of(RawValues& values, std::string_view key) {
  return values[static_cast<std::size_t>(find_key(key) - key_table().data())];
}

/// signing.key and signing.key_file set the same thing: the one with the weaker origin is reset to its
/// default. Throws if both have the same origin.
void drop_overridden_key(RawValues& values) {
  auto& text = value_of(values, inline_key);
  auto& file = value_of(values, key_file);
  if (text.origin.kind == file.origin.kind && text.origin.kind != OriginKind::default_value) {
    throw Error(ExitCode::configuration,
                fmt::format("{} ({}) and {} ({}) are both given", inline_key, describe(text.origin), key_file,
                            describe(file.origin)),
                "give one of the two");
  }
  auto& weaker = text.origin.kind < file.origin.kind ? text : file;
  weaker = default_of(*find_key(weaker.key));
}

/// A list of key files is secret only if it contains a key itself.
bool shows_secret(const RawValue& value) {
  return value.is_secret || std::ranges::any_of(value.items, is_key_text);
}

Settings parse(const RawValues& values) {
  Settings settings;
  for (const auto& value : values) {
    const bool is_given = value.origin.kind != OriginKind::default_value || !value.text.empty();
    if (is_given) find_key(value.key)->store(value, settings);
    settings.values.push_back({value.key, value.text, value.origin, shows_secret(value)});
  }
  return settings;
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

const SettingValue& setting_of(const Settings& settings, std::string_view key) {
  const auto found = std::ranges::find(settings.values, key, &SettingValue::key);
  if (found == settings.values.end()) throw std::logic_error("no such setting: " + std::string(key));
  return *found;
}

Settings load_settings(const Overrides& overrides, const EnvironmentVariables& environment, FileUse use) {
  RawValues values = defaults();
  const auto file = use == FileUse::read ? find_file(overrides, environment) : std::nullopt;
  if (file) apply_file(values, *file);
  apply_environment(values, environment);
  apply_flags(values, overrides.flags);
  drop_overridden_key(values);
  auto settings = parse(values);
  if (file) settings.file = file->path;
  return settings;
}

}  // namespace mailroom
