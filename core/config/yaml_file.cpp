// Walks sections and keys, and shows only so much of an unknown key as cannot be a secret.

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "config/key_table.hpp"
#include "config/yaml_document.hpp"

namespace mailroom::config {
namespace {

/// The part of an unknown key that may be shown. In `url:postgresql://…`, which lacks the space after the
/// colon, the rest is a value and may be secret.
std::string_view shown_key(std::string_view name) {
  constexpr std::size_t longest = 60;
  const auto is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80 ||
           std::string_view("_-. ").find(c) != std::string_view::npos;
  };
  const auto end = std::find_if_not(name.begin(), name.end(), is_of_name);
  const auto shown = name.substr(0, static_cast<std::size_t>(end - name.begin()));
  const auto may_be_shown = [](std::string_view text) {
    return text.size() <= longest && !may_hold_key(text);
  };
  if (may_be_shown(shown)) return shown;
  const auto section = shown.substr(0, std::min(shown.find('.') + 1, shown.size()));
  return may_be_shown(section) ? section : std::string_view{};
}

/// Walks the two levels of a configuration file.
class Flattener {
 public:
  explicit Flattener(YamlFile& file) : file_(file) {}

  void flatten(const YAML::Node& root) {
    if (root.IsNull()) return;
    if (!root.IsMap()) refuse_at(root.Mark(), "the file must hold sections, such as collect:");
    for (const auto& pair : root) {
      const auto name = key_text(pair.first);
      if (name != "profiles" && !is_section(name)) refuse_unknown(pair.first, name);
      refuse_repeated(pair.first, name);
      if (name == "profiles") {
        flatten_profiles(pair.first, pair.second);
      } else {
        flatten_section(name, pair.first, pair.second);
      }
    }
  }

 private:
  void flatten_section(const std::string& section, const YAML::Node& key, const YAML::Node& content) {
    // Every line of the section is commented out.
    if (content.IsNull()) return;
    if (!content.IsMap()) refuse_at(key.Mark(), section + " is a section, and must hold keys");
    for (const auto& pair : content) {
      const auto name = section + "." + key_text(pair.first);
      if (name == "submission.roles") {
        flatten_roles(pair.first, pair.second);
        continue;
      }
      const auto* entry = find_key(name);
      if (entry == nullptr) refuse_unknown(pair.first, name);
      refuse_repeated(pair.first, name);
      file_.values.push_back(value_of(*entry, name, pair.first, pair.second));
    }
  }

  void flatten_profiles(const YAML::Node& key, const YAML::Node& content) {
    if (content.IsNull()) return;
    if (!content.IsMap()) refuse_at(key.Mark(), "profiles is a section, and must hold profiles by name");
    for (const auto& pair : content) {
      const auto name = key_text(pair.first);
      if (name == default_profile)
        refuse_at(pair.first.Mark(), "default is the profile of mails that name none",
                  "its values are those of the section send");
      refuse_repeated(pair.first, "profiles." + name);
      file_.profiles.push_back({.name = name, .send = {}, .values = {}});
      auto& profile = file_.profiles.back();
      profile.values = values_of_part(a_profile, fmt::format("profiles.{}", name), pair.first, pair.second);
      for (auto& value : profile.values)
        value.profile = name;
    }
  }

  void flatten_roles(const YAML::Node& key, const YAML::Node& content) {
    refuse_repeated(key, "submission.roles");
    if (content.IsNull()) return;
    if (!content.IsMap()) refuse_at(key.Mark(), "submission.roles is a section, and must hold roles by name");
    for (const auto& pair : content) {
      const auto name = key_text(pair.first);
      const auto place = fmt::format("submission.roles.{}", name);
      refuse_repeated(pair.first, place);
      file_.submission_roles.push_back({.name = name});
      auto& role = file_.submission_roles.back();
      role.values = values_of_part(a_role, place, pair.first, pair.second);
      for (auto& value : role.values)
        value.role = name;
    }
  }

  /// A part of the file that has some keys of a section for itself.
  struct Part {
    const char* word;
    const char* section;
    bool KeyEntry::*may_have;
  };
  static constexpr Part a_profile{"profile", "send.", &KeyEntry::of_profiles};
  static constexpr Part a_role{"role", "submission.", &KeyEntry::of_roles};

  std::vector<SettingValue> values_of_part(const Part& part, const std::string& place, const YAML::Node& key,
                                           const YAML::Node& content) {
    if (content.IsNull()) return {};
    if (!content.IsMap())
      refuse_at(key.Mark(), fmt::format("{} is a {}, and must hold keys", place, part.word));
    std::vector<SettingValue> values;
    for (const auto& pair : content) {
      const auto* entry = find_key(part.section + key_text(pair.first));
      if (entry == nullptr || !(entry->*part.may_have)) refuse_in_part(part, pair.first, place, entry);
      const auto name = fmt::format("{}.{}", place, key_text(pair.first));
      refuse_repeated(pair.first, name);
      values.push_back(value_of(*entry, name, pair.first, pair.second));
    }
    return values;
  }

  [[noreturn]] void refuse_in_part(const Part& part, const YAML::Node& key, const std::string& place,
                                   const KeyEntry* entry) const {
    std::vector<std::string> names;
    for (const auto& each : key_table()) {
      if (each.*part.may_have) names.emplace_back(each.key.substr(each.key.find('.') + 1));
    }
    const auto nearest = nearest_word(key.Scalar(), names);
    refuse_at(key.Mark(),
              fmt::format("{} is not a key of a {}", shown_key(place + "." + key.Scalar()), part.word),
              entry != nullptr  ? fmt::format("{} holds for all {}s", entry->key, part.word)
              : nearest.empty() ? fmt::format("a {} may have {}", part.word, joined(names, ", "))
                                : fmt::format("did you mean {}?", nearest));
  }

  SettingValue value_of(const KeyEntry& entry, const std::string& name, const YAML::Node& key,
                        const YAML::Node& content) const {
    auto items = entry.is_list ? list(name, key, content) : scalar(name, key, content);
    auto text = joined(items, ",");
    auto value =
        make_value(entry, std::move(text), std::move(items), {OriginKind::file, place_of(key.Mark())});
    value.directory = std::filesystem::path(file_.path).parent_path();
    return value;
  }

  std::vector<std::string> scalar(const std::string& name, const YAML::Node& key,
                                  const YAML::Node& value) const {
    if (value.IsNull()) refuse_at(key.Mark(), name + " has no value", "remove the line to use the default");
    if (!value.IsScalar()) {
      refuse_at(key.Mark(), fmt::format("{} must be a single value, and is a {}", name,
                                        value.IsMap() ? "section" : "list"));
    }
    return {value.Scalar()};
  }

  std::vector<std::string> list(const std::string& name, const YAML::Node& key,
                                const YAML::Node& value) const {
    if (!value.IsSequence()) refuse_at(key.Mark(), name + " must be a list", "write it as [first, second]");
    std::vector<std::string> items;
    for (const auto& item : value) {
      if (!item.IsScalar()) {
        refuse_at(item.Mark(), fmt::format("{} must be a list of single values", name),
                  item.IsMap() ? "put an item with a colon in quotes" : "");
      }
      items.push_back(item.Scalar());
    }
    return items;
  }

  std::string key_text(const YAML::Node& key) const {
    const bool is_name = key.IsScalar() && !key.Scalar().empty() && printable(key.Scalar()) == key.Scalar();
    if (!is_name) refuse_at(key.Mark(), "a key must be printable text");
    return key.Scalar();
  }

  [[noreturn]] void refuse_unknown(const YAML::Node& key, const std::string& name) const {
    const auto shown = shown_key(name);
    const bool lacks_space = shown.size() < name.size() && name[shown.size()] == ':';
    refuse_at(key.Mark(),
              fmt::format("{}{} is not a configuration key", shown, shown == name ? "" : ellipsis()),
              lacks_space ? "write a space after the colon" : hint_for_unknown(name));
  }

  void refuse_repeated(const YAML::Node& key, const std::string& name) {
    const auto [first, is_new] = lines_.emplace(name, key.Mark().line + 1);
    if (is_new) return;
    refuse_at(key.Mark(), fmt::format("{} is given twice", name),
              fmt::format("the first is in line {}", first->second));
  }

  std::string place_of(const YAML::Mark& mark) const {
    return fmt::format("{}:{}:{}", file_.path, mark.line + 1, mark.column + 1);
  }

  [[noreturn]] void refuse_at(const YAML::Mark& mark, const std::string& problem,
                              const std::string& hint = {}) const {
    throw Error(ExitCode::configuration, fmt::format("{}: {}", place_of(mark), problem), hint);
  }

  YamlFile& file_;
  std::map<std::string, int> lines_;  ///< of sections and keys
};

}  // namespace

std::optional<YamlFile> read_yaml_file(const std::string& path) {
  const auto text = read_yaml_text(path, "the configuration file " + path);
  if (!text) return std::nullopt;
  YamlFile file{.path = path, .mode = text->mode, .values = {}};
  Flattener(file).flatten(parse_yaml(path, text->text));
  return file;
}

}  // namespace mailroom::config
