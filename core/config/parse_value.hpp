#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "config/settings.hpp"

namespace mailroom {

/// One value as somebody gave it, on its way into the settings.
struct RawValue {
  std::string key;                 ///< `collect.batch_limit`
  std::string text;                ///< a list joined by commas
  std::vector<std::string> items;  ///< of a list
  Origin origin;
  std::filesystem::path folder;  ///< of the file it stands in, for relative paths; empty for other origins
  bool is_secret = false;        ///< never shown in a message
};

/// `from mailroom.yaml:12:3`, or `the default`.
std::string describe(const Origin& origin);

/// Throws Error: of an option `--FLAG is 'TEXT', and must be REQUIREMENT` with ExitCode::usage, of a key in
/// the file or the environment `KEY is TEXT (from ORIGIN), and must be REQUIREMENT` with
/// ExitCode::configuration. Without the text when it is secret, unprintable or long, or may hold a key.
[[noreturn]] void refuse(const RawValue& value, const std::string& requirement, const std::string& hint = {});

// Each of these reads the whole text or refuses it.

/// A decimal whole number from `least` to `most`, without sign or white space.
int parse_count(const RawValue& value, int least, int most);

/// A duration (see parse_duration) from `least` to `most`.
Milliseconds parse_interval(const RawValue& value, Milliseconds least, Milliseconds most);

/// `true` or `false`.
bool parse_switch(const RawValue& value);

/// Printable text of 1 to 63 bytes: what PostgreSQL takes for a name.
std::string parse_name(const RawValue& value);

/// 64 hexadecimal digits.
std::string parse_key(const RawValue& value);

/// A path that is neither empty nor a key given by mistake, a relative one being relative to the folder of
/// the file it stands in.
std::string parse_path(const RawValue& value);

/// Each item 64 hexadecimal digits or a path, the latter as parse_path has it.
std::vector<std::string> parse_keys_or_paths(const RawValue& value);

/// True where 32 hexadecimal digits or more stand in a row: perhaps a key, which no message may show.
bool may_hold_key(std::string_view text);

/// True for 64 hexadecimal digits: a key, and no path.
bool is_key_text(std::string_view text);

/// What somebody writes for a value of an enumeration.
template <typename T>
using Choice = std::pair<std::string_view, T>;

/// One of the named choices, spelled exactly so.
template <typename T, std::size_t count>
T parse_choice(const RawValue& value, const std::array<Choice<T>, count>& choices) {
  std::string names;
  for (const auto& [name, choice] : choices) {
    if (value.text == name) return choice;
    names += names.empty() ? "" : ", ";
    names += name;
  }
  refuse(value, "one of: " + names);
}

}  // namespace mailroom
