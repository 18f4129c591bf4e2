#include "config/yaml_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/error.hpp"
#include "base/locale_text.hpp"
#include "base/text.hpp"
#include "config/key_table.hpp"

namespace mailroom {
namespace {

constexpr std::size_t largest_file = 1 << 20;

[[noreturn]] void throw_unreadable(const std::string& path, const std::string& reason) {
  throw Error(ExitCode::configuration,
              fmt::format("cannot read the configuration file {}: {}", path, reason));
}

/// An open file that is read whole.
class TextFile {
 public:
  explicit TextFile(const std::string& path) : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0 && errno != ENOENT) throw_unreadable(path_, std::strerror(errno));
  }
  ~TextFile() {
    if (fd_ >= 0) close(fd_);
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  bool exists() const { return fd_ >= 0; }

  unsigned mode() const {
    struct stat status {};
    if (fstat(fd_, &status) != 0) throw_unreadable(path_, std::strerror(errno));
    return status.st_mode & 0777U;
  }

  std::string read_all() const {
    std::string text;
    std::array<char, 8192> chunk{};
    while (text.size() <= largest_file) {
      const auto count = read(fd_, chunk.data(), chunk.size());
      if (count == 0) return text;
      if (count > 0) text.append(chunk.data(), static_cast<std::size_t>(count));
      if (count < 0 && errno != EINTR) throw_unreadable(path_, std::strerror(errno));
    }
    throw_unreadable(path_, "it is larger than 1 MiB");
  }

 private:
  const std::string& path_;
  int fd_;
};

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
      if (!is_section(name)) refuse_unknown(pair.first, name);
      if (!sections_.emplace(name, pair.first.Mark().line).second) refuse_repeated(pair.first, name);
      flatten_section(name, pair.first, pair.second);
    }
  }

 private:
  void flatten_section(const std::string& section, const YAML::Node& key, const YAML::Node& content) {
    // Every line of the section is commented out.
    if (content.IsNull()) return;
    if (!content.IsMap()) refuse_at(key.Mark(), section + " is a section, and must hold keys");
    for (const auto& pair : content) {
      const auto name = section + "." + key_text(pair.first);
      const auto* entry = find_key(name);
      if (entry == nullptr) refuse_unknown(pair.first, name);
      if (file_.values.count(name) > 0) refuse_repeated(pair.first, name);
      auto value =
          entry->is_list ? list(name, pair.first, pair.second) : scalar(name, pair.first, pair.second);
      value.line = pair.first.Mark().line + 1;
      value.column = pair.first.Mark().column + 1;
      file_.values.emplace(name, std::move(value));
    }
  }

  YamlValue scalar(const std::string& name, const YAML::Node& key, const YAML::Node& value) const {
    if (value.IsNull()) refuse_at(key.Mark(), name + " has no value", "remove the line to use the default");
    if (!value.IsScalar()) {
      refuse_at(key.Mark(), fmt::format("{} must be a single value, and is a {}", name,
                                        value.IsMap() ? "section" : "list"));
    }
    return {value.Scalar(), {}};
  }

  YamlValue list(const std::string& name, const YAML::Node& key, const YAML::Node& value) const {
    if (!value.IsSequence()) refuse_at(key.Mark(), name + " must be a list", "write it as [first, second]");
    YamlValue result;
    for (const auto& item : value) {
      if (!item.IsScalar()) refuse_at(item.Mark(), fmt::format("{} must be a list of single values", name));
      result.text += result.items.empty() ? "" : ",";
      result.text += item.Scalar();
      result.items.push_back(item.Scalar());
    }
    return result;
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

  [[noreturn]] void refuse_repeated(const YAML::Node& key, const std::string& name) const {
    const auto value = file_.values.find(name);
    const int line = value != file_.values.end() ? value->second.line : sections_.at(name) + 1;
    refuse_at(key.Mark(), fmt::format("{} is given twice", name),
              fmt::format("the first is in line {}", line));
  }

  [[noreturn]] void refuse_at(const YAML::Mark& mark, const std::string& problem,
                              const std::string& hint = {}) const {
    throw Error(ExitCode::configuration,
                fmt::format("{}:{}:{}: {}", file_.path, mark.line + 1, mark.column + 1, problem), hint);
  }

  YamlFile& file_;
  std::map<std::string, int> sections_;
};

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

/// Null for a file without content.
YAML::Node parse_document(const std::string& path, const std::string& text) {
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

}  // namespace

std::optional<YamlFile> read_yaml_file(const std::string& path) {
  const TextFile source(path);
  if (!source.exists()) return std::nullopt;
  YamlFile file{path, source.mode(), {}};
  Flattener(file).flatten(parse_document(path, source.read_all()));
  return file;
}

}  // namespace mailroom
