// Walks nested sections, and refuses a key that is given twice.

#include "config/yaml_tree.hpp"

#include <fmt/format.h>
#include <map>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "config/yaml_document.hpp"

namespace mailroom {
namespace {

constexpr int deepest = 3;

/// Walks the sections of one file.
class TreeReader {
 public:
  explicit TreeReader(const std::string& path) : path_(path) {}

  std::vector<YamlEntry> entries_of(const YAML::Node& section, int depth) const {
    std::vector<YamlEntry> found;
    std::map<std::string, int> lines;
    for (const auto& pair : section) {
      auto entry = entry_of(pair.first, pair.second, depth);
      const auto [first, is_new] = lines.emplace(entry.key, pair.first.Mark().line + 1);
      if (!is_new)
        refuse_entry(entry, "is given twice", fmt::format("the first is in line {}", first->second));
      found.push_back(std::move(entry));
    }
    return found;
  }

  [[noreturn]] void refuse_at(const YAML::Mark& mark, const std::string& problem) const {
    throw Error(ExitCode::configuration, fmt::format("{}: {}", place_of(mark), problem));
  }

 private:
  YamlEntry entry_of(const YAML::Node& key, const YAML::Node& value, int depth) const {
    const bool is_name = key.IsScalar() && !key.Scalar().empty() && printable(key.Scalar()) == key.Scalar();
    if (!is_name) refuse_at(key.Mark(), "a key must be printable text");
    YamlEntry entry{.key = key.Scalar(), .place = place_of(key.Mark())};
    if (value.IsScalar()) {
      entry.kind = YamlEntry::Kind::text;
      entry.text = value.Scalar();
    } else if (value.IsSequence()) {
      entry.kind = YamlEntry::Kind::list;
      for (const auto& item : value) {
        if (!item.IsScalar()) refuse_at(item.Mark(), entry.key + " must be a list of single values");
        entry.items.push_back(item.Scalar());
      }
    } else if (value.IsMap()) {
      if (depth == deepest) refuse_entry(entry, "must be a single value or a list, and is a section", "");
      entry.kind = YamlEntry::Kind::section;
      entry.entries = entries_of(value, depth + 1);
    }
    return entry;
  }

  [[noreturn]] static void refuse_entry(const YamlEntry& entry, const std::string& problem,
                                        const std::string& hint) {
    throw Error(ExitCode::configuration, fmt::format("{}: {} {}", entry.place, entry.key, problem), hint);
  }

  std::string place_of(const YAML::Mark& mark) const {
    return fmt::format("{}:{}:{}", path_, mark.line + 1, mark.column + 1);
  }

  const std::string& path_;
};

}  // namespace

std::vector<YamlEntry> read_yaml_tree(const std::string& path) {
  const auto text = read_yaml_text(path, path);
  if (!text) throw Error(ExitCode::configuration, fmt::format("there is no file {}", path));
  const auto root = parse_yaml(path, text->text);
  if (root.IsNull()) return {};
  const TreeReader reader(path);
  if (!root.IsMap()) reader.refuse_at(root.Mark(), "the file must hold sections, such as queues:");
  return reader.entries_of(root, 1);
}

}  // namespace mailroom
