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

/// One value as given, not parsed yet.
struct RawValue {
  std::string key;                 ///< `collect.batch_limit`
  std::string text;                ///< a list joined by commas
  std::vector<std::string> items;  ///< of a list
  Origin origin;
  std::filesystem::path directory;  ///< of its file, for relative paths; empty for other origins
  bool is_secret = false;           ///< never shown in a message
};

/// `from mailroom.yaml:12:3`, or `the default`.
std::string describe(const Origin& origin);

/// Throws Error. For an option: `--FLAG is 'TEXT', and must be REQUIREMENT` with ExitCode::usage. For a key
/// in the file or the environment: `KEY is TEXT (from ORIGIN), and must be REQUIREMENT` with
/// ExitCode::configuration. Omits a text that is secret, unprintable, long or may contain a key.
[[noreturn]] void refuse(const RawValue& value, const std::string& requirement, const std::string& hint = {});

// Each of these parses the whole text, or throws as refuse() does.

/// A decimal integer from `least` to `most`, without white space.
int parse_count(const RawValue& value, int least, int most);

/// A duration (see parse_duration) from `least` to `most`.
Milliseconds parse_interval(const RawValue& value, Milliseconds least, Milliseconds most);

/// `true` or `false`.
bool parse_switch(const RawValue& value);

/// Printable text of 1 to 63 bytes: what PostgreSQL accepts as a name.
std::string parse_name(const RawValue& value);

/// 64 hexadecimal digits.
std::string parse_key(const RawValue& value);

/// A path that is neither empty nor a key given by mistake. A relative path in a file is resolved against the
/// directory of that file.
std::string parse_path(const RawValue& value);

/// A list; each item is 64 hexadecimal digits or a path, which is resolved as in parse_path().
std::vector<std::string> parse_keys_or_paths(const RawValue& value);

/// True if `text` has 32 or more hexadecimal digits in a row: perhaps a key, which no message may show.
bool may_hold_key(std::string_view text);

/// True for 64 hexadecimal digits: a key, not a path.
bool is_key_text(std::string_view text);

/// The name of a value of an enumeration, and the value.
template <typename T>
using Choice = std::pair<std::string_view, T>;

/// One of the named choices; case matters.
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
