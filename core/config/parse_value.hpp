// The parsers of configuration values, one for each type, and the errors that they have in common.
#pragma once

#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "config/settings.hpp"

namespace mailroom::config {

/// `from mailroom.yaml:12:3`, or `the default`.
std::string describe(const Origin& origin);

/// Throws Error. For an option: `--FLAG is 'TEXT', and must be REQUIREMENT` with ExitCode::usage. For a key
/// in the file or the environment: `KEY is TEXT (from ORIGIN), and must be REQUIREMENT` with
/// ExitCode::configuration. Omits a text that is secret, unprintable, long or may contain a key.
[[noreturn]] void refuse(const SettingValue& value, const std::string& requirement,
                         const std::string& hint = {});

// Each of these parses the whole text, or throws as refuse() does.

/// A decimal integer from `least` to `most`, without white space.
int parse_count(const SettingValue& value, int least, int most);

/// A decimal number from 0 to 1: `0.01`.
double parse_fraction(const SettingValue& value);

/// A number of bytes from `least` to `most`, both of them whole kB: `10MB`, `500kB` or `65536`. As PostgreSQL
/// has it, a kB is 1,024 bytes.
int parse_size(const SettingValue& value, int least, int most);

/// A duration (see parse_duration) from `least` to `most`.
Milliseconds parse_interval(const SettingValue& value, Milliseconds least, Milliseconds most);

/// A count, or a range of two: `10..500`.
ValueRange<int> parse_count_range(const SettingValue& value, int least, int most);

/// A duration, or a range of two: `50ms..5s`.
ValueRange<Milliseconds> parse_interval_range(const SettingValue& value, Milliseconds least,
                                              Milliseconds most);

/// A rate (see mailroom::parse_rate); nullopt for an empty text.
std::optional<Rate> parse_rate_value(const SettingValue& value);

/// `true` or `false`.
bool parse_switch(const SettingValue& value);

/// Printable text of 1 to 63 bytes: what PostgreSQL accepts as a name.
std::string parse_name(const SettingValue& value);

/// A URI or a part of one: visible ASCII characters; or empty.
std::string parse_uri_reference(const SettingValue& value);

/// Different names as of parse_name(), separated by commas.
std::vector<std::string> parse_names(const SettingValue& value);

/// Where to listen; nullopt for an empty text.
std::optional<ListenAddress> parse_listen_value(const SettingValue& value);

/// 64 hexadecimal digits.
std::string parse_key(const SettingValue& value);

/// A path that is neither empty nor a key given by mistake. A relative path in a file is resolved against the
/// directory of that file.
std::string parse_path(const SettingValue& value);

/// A list of paths, each as of parse_path().
std::vector<std::string> parse_paths(const SettingValue& value);

/// A list; each item is 64 hexadecimal digits or a path, which is resolved as in parse_path().
std::vector<std::string> parse_keys_or_paths(const SettingValue& value);

/// One of the named choices; case matters.
template <typename T>
T parse_choice(const SettingValue& value, const Choices<T>& choices) {
  for (const auto& [name, choice] : choices) {
    if (value.text == name) return choice;
  }
  refuse(value, fmt::format("one of: {}", joined(names_of(choices), ", ")));
}

}  // namespace mailroom::config
