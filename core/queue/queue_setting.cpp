// The parsers of the keys. A new rate keeps a burst that an operator has chosen.

#include "queue/queue_setting.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/key_table.hpp"
#include "config/parse_value.hpp"

namespace mailroom {
namespace {

constexpr int most_priority = 1000;
constexpr int most_burst = 1'000'000'000;
constexpr std::string_view no_value = "none";

/// The last value with this key; null without one.
const SettingValue* find_value(const std::vector<SettingValue>& values, std::string_view key) {
  const auto found =
      std::find_if(values.rbegin(), values.rend(), [&](const auto& value) { return value.key == key; });
  return found == values.rend() ? nullptr : &*found;
}

std::string database_name(const SettingValue& value, std::string_view item) {
  for (const auto& action : all_actions()) {
    if (item == action || item == action_text(action)) return action;
  }
  refuse(value, "activation, recovery, or all");
}

std::vector<std::string> parse_actions(const SettingValue& value) {
  if (value.text == "all") return {};
  std::vector<std::string> given;
  for (const auto& item : value.items)
    given.push_back(database_name(value, trimmed(item)));
  if (given.empty()) refuse(value, "activation, recovery, or all");
  std::vector<std::string> actions;
  for (const auto& action : all_actions()) {
    if (std::find(given.begin(), given.end(), action) != given.end()) actions.push_back(action);
  }
  return actions == all_actions() ? std::vector<std::string>() : actions;
}

Rate parse_paced_rate(const SettingValue& value) {
  const auto rate = parse_rate(value.text);
  if (!rate) refuse(value, "a number above 0 and a time, such as 14/s, 100/min or 0.38/s; or none");
  return *rate;
}

/// A text that the configuration key accepts, or empty for `none`.
std::string parse_batch_value(const SettingValue& value) {
  if (value.text == no_value) return "";
  Settings scratch;
  find_key("collect." + value.key)->target.store(value, scratch);
  return value.text;
}

}  // namespace

const std::vector<std::string>& queue_keys() {
  static const std::vector<std::string> keys{"actions", "priority",    "rate",         "burst",
                                             "budget",  "batch_limit", "batch_timeout"};
  return keys;
}

const std::vector<std::string>& budget_keys() {
  static const std::vector<std::string> keys{"rate", "burst"};
  return keys;
}

std::string parse_queue_name(const SettingValue& value) {
  const auto names = parse_names(value);
  if (names.size() != 1 || names.front() != value.text)
    refuse(value, "a name without commas, and without blanks around it");
  return names.front();
}

std::optional<PacedRate> changed(std::optional<PacedRate> paced, const std::vector<SettingValue>& values) {
  const auto* rate = find_value(values, "rate");
  const auto* burst = find_value(values, "burst");
  if (rate != nullptr && rate->text == no_value) {
    paced.reset();
  } else if (rate != nullptr) {
    const auto parsed = parse_paced_rate(*rate);
    const bool keeps_burst = paced && paced->burst != PacedRate::default_burst(paced->rate);
    paced = PacedRate{parsed, keeps_burst ? paced->burst : PacedRate::default_burst(parsed)};
  }
  if (burst == nullptr) return paced;
  const auto count = parse_count(*burst, 1, most_burst);
  if (!paced) refuse(*burst, "given with a rate", "a burst is how many tokens a rate lets go at once");
  paced->burst = count;
  return paced;
}

QueueProperties changed(QueueProperties properties, const std::vector<SettingValue>& values) {
  if (const auto* actions = find_value(values, "actions")) properties.actions = parse_actions(*actions);
  if (const auto* priority = find_value(values, "priority"))
    properties.priority = parse_count(*priority, -most_priority, most_priority);
  properties.rate = changed(properties.rate, values);
  if (const auto* budget = find_value(values, "budget"))
    properties.budget = budget->text == no_value ? "" : parse_queue_name(*budget);
  if (const auto* limit = find_value(values, "batch_limit"))
    properties.batch_limit = parse_batch_value(*limit);
  if (const auto* timeout = find_value(values, "batch_timeout"))
    properties.batch_timeout = parse_batch_value(*timeout);
  return properties;
}

}  // namespace mailroom
