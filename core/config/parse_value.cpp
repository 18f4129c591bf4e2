// An error names the option, variable or line of the value, and hides what may be a key or a token.

#include "config/parse_value.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <type_traits>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"

namespace mailroom::config {
namespace {

constexpr std::size_t longest_name = 63;
constexpr std::size_t longest_shown = 100;
/// A plain file name of this length is probably a mistyped key, which no message may show.
constexpr std::size_t shortest_mistaken_key = 32;

bool may_be_shown(const SettingValue& value) {
  return !value.is_secret && value.text.size() <= longest_shown && printable(value.text) == value.text &&
         !may_hold_key(value.text);
}

std::string resolve(const std::string& path, const SettingValue& value) {
  return (value.directory / path).string();
}

bool is_mistaken_key(std::string_view item) {
  return item.size() >= shortest_mistaken_key && item.find_first_of("/.") == std::string_view::npos;
}

using Ends = std::pair<std::string_view, std::string_view>;

/// Both sides of `..`; nullopt for a text without it.
std::optional<Ends> ends_of(std::string_view text) {
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  return Ends{text.substr(0, dots), text.substr(dots + 2)};
}

bool has_unit(std::string_view duration) {
  return duration.find_first_not_of("0123456789") != std::string_view::npos;
}

/// Refuses `50..5s`, where the reader may take 50 for seconds.
void require_units(const SettingValue& value, const Ends& ends) {
  const auto& [min, max] = ends;
  if (min == "0" || has_unit(min) == has_unit(max)) return;
  refuse(value, "a range with a unit at both ends",
         fmt::format("a bare number is milliseconds: write {}{}..{}{}", min, has_unit(min) ? "" : "ms", max,
                     has_unit(max) ? "" : "ms"));
}

/// A value that `parse` reads, or a range of two that `parse_end` reads, which are `kind`.
template <typename T, typename Parse, typename ParseEnd>
ValueRange<T> parse_range(const SettingValue& value, T least, T most, Parse parse, ParseEnd parse_end,
                          const std::string& kind, const char* example) {
  const auto ends = ends_of(value.text);
  if (!ends) {
    const T only = parse(value, least, most);
    return {only, only};
  }
  const auto min = parse_end(ends->first);
  const auto max = parse_end(ends->second);
  const auto is_within = [&](const auto& end) { return end && *end >= least && *end <= most; };
  if (!is_within(min) || !is_within(max)) refuse(value, "a range of two " + kind, example);
  if constexpr (std::is_same_v<T, Milliseconds>) require_units(value, *ends);
  if (*min <= *max) return {*min, *max};
  refuse(value, "a range from the smaller value to the larger",
         fmt::format("write {}..{}", ends->second, ends->first));
}

/// Names are sent to the server, which may log them. The message does not repeat the token.
void refuse_token(const SettingValue& value) {
  if (!holds_token(value.text)) return;
  const bool is_option = value.origin.kind == OriginKind::flag;
  throw Error(is_option ? ExitCode::usage : ExitCode::configuration,
              fmt::format("{} ({}) holds a token, or the secret of one, instead of a name", value.name(),
                          describe(value.origin)),
              "tokens are for mailroom audit --token TOKEN and mailroom verify TOKEN");
}

}  // namespace

std::string describe(const Origin& origin) {
  return origin.kind == OriginKind::default_value ? "the default" : "from " + origin.where;
}

void refuse(const SettingValue& value, const std::string& requirement, const std::string& hint) {
  const auto shown = value.text.empty() ? "empty" : value.text;
  // A value from an option: name the option, not the key and its origin.
  const bool is_option = value.origin.kind == OriginKind::flag;
  const auto origin = is_option ? "" : describe(value.origin);
  auto subject = is_option ? value.origin.where : value.name();
  if (may_be_shown(value)) {
    subject +=
        is_option ? fmt::format(" is '{}', and", shown) : fmt::format(" is {} ({}), and", shown, origin);
  } else if (!is_option) {
    subject += fmt::format(" ({})", origin);
  }
  throw Error(is_option ? ExitCode::usage : ExitCode::configuration,
              fmt::format("{} must be {}", subject, requirement), hint);
}

int parse_count(const SettingValue& value, int least, int most) {
  const auto number = parse_number<int>(value.text);
  if (!number || *number < least || *number > most) {
    refuse(value, fmt::format("a whole number from {} to {}", least, most));
  }
  return *number;
}

double parse_fraction(const SettingValue& value) {
  const std::string_view text = value.text;
  double number = -1;
  const auto* const end = text.data() + text.size();
  const bool is_decimal = text.find_first_not_of("0123456789.") == std::string_view::npos;
  if (!is_decimal || std::from_chars(text.data(), end, number).ptr != end || number < 0 || number > 1)
    refuse(value, "a number from 0 to 1", "write 0.01 for one in a hundred");
  return number;
}

int parse_size(const SettingValue& value, int least, int most) {
  constexpr std::int64_t kilobyte = 1024;
  const std::string_view text = value.text;
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = text.substr(digits);
  const std::int64_t factor = unit.empty()   ? 1
                              : unit == "kB" ? kilobyte
                              : unit == "MB" ? kilobyte * kilobyte
                                             : 0;
  const auto number = parse_number<int>(text.substr(0, digits));
  const auto size = number ? *number * factor : 0;
  if (size < least || size > most) {
    const auto shown = [&](int bytes) {
      return bytes % (kilobyte * kilobyte) == 0 ? fmt::format("{}MB", bytes / (kilobyte * kilobyte))
                                                : fmt::format("{}kB", bytes / kilobyte);
    };
    refuse(value, fmt::format("a size from {} to {}", shown(least), shown(most)),
           "write 500kB or 10MB; a bare number is bytes, and a kB has 1024");
  }
  return static_cast<int>(size);
}

Milliseconds parse_interval(const SettingValue& value, Milliseconds least, Milliseconds most) {
  const auto duration = parse_duration(value.text);
  if (!duration || *duration < least || *duration > most) {
    refuse(value, fmt::format("a duration from {} to {}", format_duration(least), format_duration(most)),
           fmt::format("write {}; a bare number is milliseconds",
                       least < std::chrono::hours(1) ? "250ms, 5s or 4m30s" : "12h, 7d or 1d12h"));
  }
  return *duration;
}

ValueRange<int> parse_count_range(const SettingValue& value, int least, int most) {
  return parse_range(value, least, most, parse_count, parse_number<int>,
                     fmt::format("whole numbers from {} to {}", least, most), "for example 10..500");
}

ValueRange<Milliseconds> parse_interval_range(const SettingValue& value, Milliseconds least,
                                              Milliseconds most) {
  return parse_range(value, least, most, parse_interval, parse_duration,
                     fmt::format("durations from {} to {}", format_duration(least), format_duration(most)),
                     "for example 50ms..5s");
}

std::optional<Rate> parse_rate_value(const SettingValue& value) {
  if (value.text.empty()) return std::nullopt;
  const auto rate = parse_rate(value.text);
  if (!rate) refuse(value, "a number and a time, such as 14/s, 100/min or 50000/1d");
  return rate;
}

bool parse_switch(const SettingValue& value) {
  if (value.text != "true" && value.text != "false") refuse(value, "true or false");
  return value.text == "true";
}

std::string parse_name(const SettingValue& value) {
  refuse_token(value);
  if (value.text.empty() || value.text.size() > longest_name || printable(value.text) != value.text) {
    refuse(value, fmt::format("printable text of 1 to {} bytes", longest_name));
  }
  return value.text;
}

std::string parse_uri_reference(const SettingValue& value) {
  const bool is_sound = std::all_of(value.text.begin(), value.text.end(), [](char c) {
    return c > ' ' && c < 0x7f && std::string_view("\"<>\\^`{|}").find(c) == std::string_view::npos;
  });
  if (!is_sound) refuse(value, "a URI or a part of one, such as https://app.example/mailroom or /mailroom");
  return value.text;
}

std::vector<std::string> parse_names(const SettingValue& value) {
  refuse_token(value);
  std::vector<std::string> names;
  for (const auto item : split(value.text, ',')) {
    const std::string name(trimmed(item));
    if (name.empty() || name.size() > longest_name || printable(name) != name)
      refuse(value,
             fmt::format("names separated by commas, each printable text of 1 to {} bytes", longest_name));
    if (std::find(names.begin(), names.end(), name) != names.end())
      refuse(value, "different names", "remove the second " + name);
    names.push_back(name);
  }
  return names;
}

std::optional<ListenAddress> parse_listen_value(const SettingValue& value) {
  if (value.text.empty()) return std::nullopt;
  auto address = parse_listen_address(value.text);
  if (!address) {
    refuse(value, "an IP address of this host and a port, or the path of a unix socket",
           "for example 127.0.0.1:9464, [::1]:9464 or /run/mailroom/metrics.sock");
  }
  if (address->path.size() > longest_socket_path) {
    refuse(value, fmt::format("a path of at most {} bytes", longest_socket_path),
           "the system allows no longer path for a unix socket");
  }
  return address;
}

std::string parse_key(const SettingValue& value) {
  const auto text = without_line_end(value.text);
  require_key_text(text, value.origin.where);
  return std::string(text);
}

std::string parse_path(const SettingValue& value) {
  if (value.text.empty()) refuse(value, "the path of a file");
  if (is_mistaken_key(value.text) && may_hold_key(value.text)) {
    throw Error(
        ExitCode::configuration,
        fmt::format("{} ({}) is a key, and must be the path of a file", value.name(), describe(value.origin)),
        "give the key itself as signing.key; write ./NAME for a file with such a name");
  }
  return resolve(value.text, value);
}

std::vector<std::string> parse_paths(const SettingValue& value) {
  std::vector<std::string> paths;
  for (const auto& item : value.items) {
    auto each = value;
    each.text = item;
    paths.push_back(parse_path(each));
  }
  return paths;
}

std::vector<std::string> parse_keys_or_paths(const SettingValue& value) {
  std::vector<std::string> parsed;
  for (const auto& item : value.items) {
    if (item.empty() || (is_mistaken_key(item) && !is_key_text(item))) {
      const auto problem = item.empty() ? "empty" : "neither 64 hexadecimal digits nor a path";
      throw Error(ExitCode::configuration,
                  fmt::format("item {} of {} ({}) is {}", parsed.size() + 1, value.name(),
                              describe(value.origin), problem),
                  item.empty() ? "" : "write ./NAME for a file with such a name");
    }
    parsed.push_back(is_key_text(item) ? item : resolve(item, value));
  }
  return parsed;
}

}  // namespace mailroom::config
