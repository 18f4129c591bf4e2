// Maps YAML to queues and budgets, and answers an unknown key with the nearest known one.

#include "queue/queue_file.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "config/yaml_tree.hpp"
#include "queue/queue_setting.hpp"

namespace mailroom {
namespace {

[[noreturn]] void refuse_entry(const YamlEntry& entry, const std::string& problem,
                               const std::string& hint = {}) {
  throw Error(ExitCode::configuration, fmt::format("{}: {} {}", entry.place, shown_text(entry.key), problem),
              hint);
}

void require_known(const YamlEntry& entry, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), entry.key) != known.end()) return;
  const auto meant = nearest_word(entry.key, known);
  refuse_entry(entry, "is not a key here",
               meant.empty() ? fmt::format("keys: {}", fmt::join(known, ", ")) : "did you mean: " + meant);
}

SettingValue value_of(const YamlEntry& entry) {
  if (entry.kind == YamlEntry::Kind::nothing)
    refuse_entry(entry, "has no value", "remove the line to use the default");
  const bool may_be_list = entry.key == "actions";
  if (entry.kind == YamlEntry::Kind::section || (entry.kind == YamlEntry::Kind::list && !may_be_list))
    refuse_entry(entry, "must be a single value");
  SettingValue value{
      .key = entry.key, .text = entry.text, .items = entry.items, .origin = {OriginKind::file, entry.place}};
  if (entry.kind == YamlEntry::Kind::list) {
    value.text = fmt::format("{}", fmt::join(entry.items, ","));
  } else {
    for (const auto item : split(entry.text, ','))
      value.items.emplace_back(item);
  }
  return value;
}

/// The queues or budgets of a section; one without content has the defaults.
std::vector<QueueFileEntry> read_section(const YamlEntry& section, const std::vector<std::string>& known) {
  if (section.kind == YamlEntry::Kind::nothing) return {};
  if (section.kind != YamlEntry::Kind::section) refuse_entry(section, "must hold names");
  std::vector<QueueFileEntry> entries;
  for (const auto& item : section.entries) {
    if (item.kind == YamlEntry::Kind::text || item.kind == YamlEntry::Kind::list)
      refuse_entry(item, fmt::format("must hold keys: {}", fmt::join(known, ", ")));
    QueueFileEntry entry{
        .name = parse_queue_name(
            {.key = "name", .text = item.key, .items = {}, .origin = {OriginKind::file, item.place}}),
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

QueueFile read_queue_file(const std::string& path) {
  auto keys_of_queue = queue_keys();
  keys_of_queue.emplace_back("from");
  QueueFile file;
  for (const auto& section : read_yaml_tree(path)) {
    require_known(section, {"budgets", "queues"});
    if (section.key == "budgets") {
      file.budgets = read_section(section, budget_keys());
    } else {
      file.queues = read_section(section, keys_of_queue);
    }
  }
  return file;
}

}  // namespace mailroom
