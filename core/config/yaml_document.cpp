// Avoids two traps of yaml-cpp: an endless loop at a stray comma, and quotes that nobody closes.

#include "config/yaml_document.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <sstream>
#include <sys/stat.h>
#include <vector>
#include <yaml-cpp/eventhandler.h>

#include "base/error.hpp"
#include "base/key_text.hpp"
#include "base/printable.hpp"

namespace mailroom {
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

}  // namespace mailroom
