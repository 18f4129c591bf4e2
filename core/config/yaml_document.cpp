// Avoids two traps of yaml-cpp: an endless loop at a stray comma, and quotes that nobody closes.

#include "config/yaml_document.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <sstream>
#include <sys/stat.h>
#include <vector>
#include <yaml-cpp/eventhandler.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_text.hpp"

namespace mailroom::config {
namespace {

constexpr std::size_t largest_file = 1 << 20;

[[noreturn]] void throw_unreadable(const std::string& name, const std::string& reason) {
  throw Error(ExitCode::configuration, fmt::format("cannot read {}: {}", name, reason));
}

/// Collects where the documents of a file begin and ignores their content.
class DocumentStarts final : public YAML::EventHandler {
 public:
  const std::vector<YAML::Mark>& starts() const { return starts_; }

  void OnDocumentStart(const YAML::Mark& mark) override { starts_.push_back(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}

 private:
  std::vector<YAML::Mark> starts_;
};

/// Returns 2 for any number above 1. At a stray comma yaml-cpp finds an endless sequence of empty documents
/// (and LoadAll never returns): that is reported as invalid YAML.
std::size_t count_documents(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts found;
  const auto& starts = found.starts();
  while (starts.size() < 3 && parser.HandleNextDocument(found)) {
    if (starts.size() > 1 && starts.back().pos == starts[starts.size() - 2].pos)
      throw YAML::ParserException(starts.back(), "nothing can begin here");
  }
  return std::min<std::size_t>(starts.size(), 2);
}

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

std::optional<YamlText> read_yaml_text(const std::string& path, const std::string& name) {
  const auto close = [](std::FILE* open) { std::fclose(open); };
  const std::unique_ptr<std::FILE, decltype(close)> source(std::fopen(path.c_str(), "re"), close);
  if (!source && errno == ENOENT) return std::nullopt;
  struct stat status {};
  if (!source || fstat(fileno(source.get()), &status) != 0) throw_unreadable(name, std::strerror(errno));
  YamlText read{std::string(largest_file + 1, '\0'), status.st_mode & 0777U};
  auto& text = read.text;
  text.resize(std::fread(text.data(), 1, text.size(), source.get()));
  if (std::ferror(source.get()) != 0) throw_unreadable(name, std::strerror(errno));
  if (text.size() > largest_file) throw_unreadable(name, "it is larger than 1 MiB");
  return read;
}

YAML::Node parse_yaml(const std::string& path, const std::string& text) {
  // yaml-cpp accepts an unclosed quote if the file ends in a newline, so strip trailing white space.
  const auto last = text.find_last_not_of(" \t\r\n");
  const auto content = last == std::string::npos ? std::string{} : text.substr(0, last + 1);
  try {
    if (count_documents(content) < 2) return YAML::Load(content);
  } catch (const YAML::Exception& error) {
    // The reason may quote the file (the name of an alias).
    const auto reason = may_hold_key(error.msg) ? "" : ": " + printable(error.msg);
    throw Error(ExitCode::configuration, fmt::format("{}:{}:{}: not valid YAML{}", path, error.mark.line + 1,
                                                     error.mark.column + 1, reason));
  }
  throw Error(ExitCode::configuration, fmt::format("{} holds more than one YAML document", path),
              "remove everything from the second --- line on");
}

std::vector<YamlEntry> read_yaml_tree(const std::string& path) {
  const auto text = read_yaml_text(path, path);
  if (!text) throw Error(ExitCode::configuration, fmt::format("there is no file {}", path));
  const auto root = parse_yaml(path, text->text);
  if (root.IsNull()) return {};
  const TreeReader reader(path);
  if (!root.IsMap()) reader.refuse_at(root.Mark(), "the file must hold sections, such as queues:");
  return reader.entries_of(root, 1);
}

}  // namespace mailroom::config
