// Splits the list of relays, and leaves each URL to its carrier. It opens no file and no connection.

#include "config/relay_path.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace mailroom::config {

std::vector<RelayTarget> parse_relays(std::string_view text) {
  std::vector<RelayTarget> targets;
  if (text.empty()) return targets;
  for (const auto part : split(text, ',')) {
    const auto url = trimmed(part);
    const auto end = url.find("://");
    targets.push_back({.scheme = lower_case(url.substr(0, end == std::string_view::npos ? 0 : end)),
                       .url = std::string(url)});
  }
  return targets;
}

std::string RelayPath::option(std::string_view key) const {
  const auto found = options.find(key);
  return found == options.end() ? std::string{} : found->second;
}

std::string RelayPath::name_of(std::string_view key) const {
  return name_in_profile(profile, key);
}

std::string name_in_profile(std::string_view profile, std::string_view key) {
  return profile.empty() ? std::string(key)
                         : fmt::format("profiles.{}.{}", profile, key.substr(key.find('.') + 1));
}

}  // namespace mailroom::config
