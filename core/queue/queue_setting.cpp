// The parsers of the keys. A new rate keeps a burst that an operator has chosen.

#include "queue/queue_setting.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "config/key_table.hpp"
#include "config/parse_value.hpp"
#include "config/yaml_document.hpp"
#include "queue/action.hpp"

namespace mailroom::queue {
namespace {

constexpr int most_priority = 1000;
constexpr int most_burst = 1'000'000'000;
constexpr std::string_view no_value = "none";

/// The last value with this key; null without one.
const config::SettingValue* find_value(const std::vector<config::SettingValue>& values,
                                       std::string_view key) {
  const auto found =
      std::find_if(values.rbegin(), values.rend(), [&](const auto& value) { return value.key == key; });
  return found == values.rend() ? nullptr : &*found;
}

/// Sorted, each once. Without `known`, checks only that there is one.
std::vector<std::string> parse_actions(const config::SettingValue& value, const Actions* known) {
  if (value.text == "all") return {};
  const auto wanted = fmt::format(
      "{}, or all", joined((known != nullptr ? *known : Actions::built_in()).short_names(), ", "));
  std::vector<std::string> actions;
  for (const auto& item : value.items) {
    const auto name = trimmed(item);
    if (name.empty()) config::refuse(value, wanted);
    if (known == nullptr) continue;
    const auto* action = known->find_typed(name);
    if (action == nullptr) config::refuse(value, wanted);
    actions.push_back(action->name);
  }
  if (value.items.empty()) config::refuse(value, wanted);
  std::sort(actions.begin(), actions.end());
  actions.erase(std::unique(actions.begin(), actions.end()), actions.end());
  return actions;
}

config::Rate parse_paced_rate(const config::SettingValue& value) {
  const auto rate = config::parse_rate(value.text);
  if (!rate) config::refuse(value, "a number above 0 and a time, such as 14/s, 100/min or 0.38/s; or none");
  return *rate;
}

/// A text that the configuration key accepts, or empty for `none`.
std::string parse_batch_value(const config::SettingValue& value) {
  if (value.text == no_value) return "";
  config::Settings scratch;
  config::find_key("collect." + value.key)->target.store(value, scratch);
  return value.text;
}

[[noreturn]] void refuse_entry(const config::YamlEntry& entry, const std::string& problem,
                               const std::string& hint = {}) {
  throw Error(ExitCode::configuration, fmt::format("{}: {} {}", entry.place, shown_text(entry.key), problem),
              hint);
}

void require_known(const config::YamlEntry& entry, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), entry.key) != known.end()) return;
  const auto meant = nearest_word(entry.key, known);
  refuse_entry(entry, "is not a key here",
               meant.empty() ? fmt::format("keys: {}", joined(known, ", ")) : "did you mean: " + meant);
}

config::SettingValue value_of(const config::YamlEntry& entry) {
  if (entry.kind == config::YamlEntry::Kind::nothing)
    refuse_entry(entry, "has no value", "remove the line to use the default");
  const bool may_be_list = entry.key == "actions";
  if (entry.kind == config::YamlEntry::Kind::section ||
      (entry.kind == config::YamlEntry::Kind::list && !may_be_list))
    refuse_entry(entry, "must be a single value");
  config::SettingValue value{.key = entry.key,
                             .text = entry.text,
                             .items = entry.items,
                             .origin = {config::OriginKind::file, entry.place}};
  if (entry.kind == config::YamlEntry::Kind::list) {
    value.text = joined(entry.items, ",");
  } else {
    for (const auto item : split(entry.text, ','))
      value.items.emplace_back(item);
  }
  return value;
}

/// The queues or budgets of a section; one without content has the defaults.
std::vector<QueueFileEntry> read_section(const config::YamlEntry& section,
                                         const std::vector<std::string>& known) {
  if (section.kind == config::YamlEntry::Kind::nothing) return {};
  if (section.kind != config::YamlEntry::Kind::section) refuse_entry(section, "must hold names");
  std::vector<QueueFileEntry> entries;
  for (const auto& item : section.entries) {
    if (item.kind == config::YamlEntry::Kind::text || item.kind == config::YamlEntry::Kind::list)
      refuse_entry(item, fmt::format("must hold keys: {}", joined(known, ", ")));
    QueueFileEntry entry{
        .name = parse_queue_name(
            {.key = "name", .text = item.key, .items = {}, .origin = {config::OriginKind::file, item.place}}),
        .place = item.place};
    for (const auto& key : item.entries) {
      require_known(key, known);
      auto value = value_of(key);
      if (key.key == "from") {
        entry.from = std::move(value);
      } else {
        entry.values.push_back(std::move(value));
      }
    }
    entries.push_back(std::move(entry));
  }
  return entries;
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

std::string parse_queue_name(const config::SettingValue& value) {
  const auto names = config::parse_names(value);
  if (names.size() != 1 || names.front() != value.text)
    config::refuse(value, "a name without commas, and without blanks around it");
  return names.front();
}

std::optional<PacedRate> changed(std::optional<PacedRate> paced,
                                 const std::vector<config::SettingValue>& values) {
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
  const auto count = config::parse_count(*burst, 1, most_burst);
  if (!paced)
    config::refuse(*burst, "given with a rate", "a burst is how many tokens a rate lets go at once");
  paced->burst = count;
  return paced;
}

QueueProperties changed(QueueProperties properties, const std::vector<config::SettingValue>& values,
                        const Actions* known) {
  if (const auto* actions = find_value(values, "actions"))
    properties.actions = parse_actions(*actions, known);
  if (const auto* priority = find_value(values, "priority"))
    properties.priority = config::parse_count(*priority, -most_priority, most_priority);
  properties.rate = changed(properties.rate, values);
  if (const auto* budget = find_value(values, "budget"))
    properties.budget = budget->text == no_value ? "" : parse_queue_name(*budget);
  if (const auto* limit = find_value(values, "batch_limit"))
    properties.batch_limit = parse_batch_value(*limit);
  if (const auto* timeout = find_value(values, "batch_timeout"))
    properties.batch_timeout = parse_batch_value(*timeout);
  return properties;
}

QueueFile read_queue_file(const std::string& path) {
  auto keys_of_queue = queue_keys();
  keys_of_queue.emplace_back("from");
  QueueFile file;
  for (const auto& section : config::read_yaml_tree(path)) {
    require_known(section, {"budgets", "queues"});
    if (section.key == "budgets") {
      file.budgets = read_section(section, budget_keys());
    } else {
      file.queues = read_section(section, keys_of_queue);
    }
  }
  return file;
}

}  // namespace mailroom::queue
