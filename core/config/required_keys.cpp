// Reports all that are missing at once, instead of one at each run.

#include "config/required_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace mailroom {

void require_keys(const std::vector<RequiredKey>& keys, const Settings& settings) {
  std::vector<std::string> missing;
  std::string example;
  for (const auto& [key, each] : keys) {
    if (!setting_of(settings, key).text.empty()) continue;
    if (missing.empty()) example = fmt::format("for example {}: {}", key, each);
    missing.push_back(key);
  }
  if (missing.empty()) return;
  throw Error(ExitCode::configuration,
              fmt::format("{} {} not set", fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are"),
              example + "; mailroom.yaml.example describes each");
}

}  // namespace mailroom
