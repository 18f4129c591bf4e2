// Finds the nearest key to a misspelt one.

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <vector>

#include "base/wording.hpp"
#include "config/key_table.hpp"

namespace mailroom::config {
namespace {

std::string_view section_of(std::string_view key) {
  return key.substr(0, key.find('.'));
}

std::string_view name_of(std::string_view key) {
  return key.substr(key.find('.') + 1);
}

/// The keys that an unknown key may stand for, indexed by the text to type. Within a known section only names
/// are compared, so that a shared section does not make them similar. A key without a section may lack only
/// that.
std::map<std::string, std::string> suggestions_for(const std::string& key) {
  std::map<std::string, std::string> suggestions;
  const bool has_section = key.find('.') != std::string::npos;
  const bool knows_section = has_section && is_section(section_of(key));
  for (const auto& entry : key_table()) {
    const std::string whole(entry.key);
    if (knows_section && section_of(whole) != section_of(key)) continue;
    suggestions.emplace(has_section && !knows_section ? whole : std::string(name_of(whole)), whole);
    if (!has_section) suggestions.emplace(section_of(whole), section_of(whole));
  }
  return suggestions;
}

}  // namespace

bool is_section(std::string_view name) {
  return std::ranges::any_of(key_table(), [&](const auto& entry) { return section_of(entry.key) == name; });
}

std::string hint_for_unknown(const std::string& key) {
  const auto suggestions = suggestions_for(key);
  std::vector<std::string> candidates;
  for (const auto& [typed, meant] : suggestions)
    candidates.push_back(typed);
  const auto nearest = nearest_word(is_section(section_of(key)) ? name_of(key) : key, candidates);
  return nearest.empty() ? "mailroom.yaml.example lists every key"
                         : fmt::format("did you mean {}?", suggestions.at(nearest));
}

}  // namespace mailroom::config
