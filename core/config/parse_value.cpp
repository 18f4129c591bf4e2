#include "config/parse_value.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "base/duration.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr std::size_t key_digits = 64;
constexpr std::size_t longest_name = 63;
constexpr std::size_t longest_shown = 100;
/// A plain file name of this length is probably a mistyped key, which no message may show.
constexpr std::size_t shortest_mistaken_key = 32;

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), is_hex_digit);
}

bool may_be_shown(const RawValue& value) {
  return !value.is_secret && value.text.size() <= longest_shown && printable(value.text) == value.text &&
         !may_hold_key(value.text);
}

std::string resolve(const std::string& path, const RawValue& value) {
  return (value.directory / path).string();
}

bool is_mistaken_key(std::string_view item) {
  return item.size() >= shortest_mistaken_key && item.find_first_of("/.") == std::string_view::npos;
}

}  // namespace

std::string describe(const Origin& origin) {
  return origin.kind == OriginKind::default_value ? "the default" : "from " + origin.where;
}

void refuse(const RawValue& value, const std::string& requirement, const std::string& hint) {
  const auto shown = value.text.empty() ? "empty" : value.text;
  // A value from an option: name the option, not the key and its origin.
  if (value.origin.kind == OriginKind::flag) {
    throw Error(ExitCode::usage,
                may_be_shown(value)
                    ? fmt::format("{} is '{}', and must be {}", value.origin.where, shown, requirement)
                    : fmt::format("{} must be {}", value.origin.where, requirement),
                hint);
  }
  const auto origin = describe(value.origin);
  throw Error(ExitCode::configuration,
              may_be_shown(value)
                  ? fmt::format("{} is {} ({}), and must be {}", value.key, shown, origin, requirement)
                  : fmt::format("{} ({}) must be {}", value.key, origin, requirement),
              hint);
}

int parse_count(const RawValue& value, int least, int most) {
  const auto& text = value.text;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < least || number > most) {
    refuse(value, fmt::format("a whole number from {} to {}", least, most));
  }
  return number;
}

Milliseconds parse_interval(const RawValue& value, Milliseconds least, Milliseconds most) {
  const auto duration = parse_duration(value.text);
  if (!duration || *duration < least || *duration > most) {
    refuse(value, fmt::format("a duration from {} to {}", format_duration(least), format_duration(most)),
           fmt::format("write {}; a bare number is milliseconds",
                       least < std::chrono::hours(1) ? "250ms, 5s or 4m30s" : "12h, 7d or 1d12h"));
  }
  return *duration;
}

bool parse_switch(const RawValue& value) {
  if (value.text != "true" && value.text != "false") refuse(value, "true or false");
  return value.text == "true";
}

std::string parse_name(const RawValue& value) {
  if (value.text.empty() || value.text.size() > longest_name || printable(value.text) != value.text) {
    refuse(value, fmt::format("printable text of 1 to {} bytes", longest_name));
  }
  return value.text;
}

std::string parse_key(const RawValue& value) {
  // A secret that was made from a file often ends in the file's newline.
  std::string_view text = value.text;
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  const auto hint = "make one with: openssl rand -hex 32";
  if (!is_hex(text)) {
    throw Error(ExitCode::configuration,
                fmt::format("the signing key in {} contains a character that is not a hexadecimal digit",
                            value.origin.where),
                hint);
  }
  if (text.size() != key_digits) {
    throw Error(ExitCode::configuration,
                fmt::format("the signing key in {} has {} hexadecimal digit{}, and needs {}",
                            value.origin.where, text.size(), text.size() == 1 ? "" : "s", key_digits),
                hint);
  }
  return std::string(text);
}

std::string parse_path(const RawValue& value) {
  if (value.text.empty()) refuse(value, "the path of a file");
  if (is_mistaken_key(value.text) && may_hold_key(value.text)) {
    throw Error(
        ExitCode::configuration,
        fmt::format("{} ({}) is a key, and must be the path of a file", value.key, describe(value.origin)),
        "give the key itself as signing.key; write ./NAME for a file with such a name");
  }
  return resolve(value.text, value);
}

std::vector<std::string> parse_keys_or_paths(const RawValue& value) {
  std::vector<std::string> parsed;
  for (const auto& item : value.items) {
    if (item.empty() || (is_mistaken_key(item) && !is_key_text(item))) {
      const auto problem = item.empty() ? "empty" : "neither 64 hexadecimal digits nor a path";
      throw Error(ExitCode::configuration,
                  fmt::format("item {} of {} ({}) is {}", parsed.size() + 1, value.key,
                              describe(value.origin), problem),
                  item.empty() ? "" : "write ./NAME for a file with such a name");
    }
    parsed.push_back(is_key_text(item) ? item : resolve(item, value));
  }
  return parsed;
}

bool may_hold_key(std::string_view text) {
  const auto same_kind = [](char a, char b) { return is_hex_digit(a) == is_hex_digit(b); };
  const auto run = std::search_n(text.begin(), text.end(), shortest_mistaken_key, '0', same_kind);
  return run != text.end();
}

bool is_key_text(std::string_view text) {
  return text.size() == key_digits && is_hex(text);
}

}  // namespace mailroom
