// Which directory of core/ includes which, that only one place includes a library that takes long to compile,
// and that rows are read by name.

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/pattern.hpp"
#include "base/text.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::include_direction_test {
namespace {

/// The level of each directory of core, from the table of ARCHITECTURE.md. A directory may include its own
/// headers and those of lower levels.
std::map<std::string, int> levels() {
  const Pattern row(R"re(\n\| (\d+) \| ([^|]+) \|)re");
  const Pattern name("`([a-z_]+)`");
  std::map<std::string, int> level_of;
  for (const auto& line : row.all(read_file(source_directory + "/ARCHITECTURE.md"))) {
    for (const auto& directory : name.all(line[2]))
      REQUIRE(level_of.emplace(directory[1], std::stoi(line[1])).second);
  }
  return level_of;
}

/// The text of each source below a directory.
using Sources = std::map<std::filesystem::path, std::string>;

/// Those below `root`, such as `/core`, read once for all tests.
const Sources& sources_below(const std::string& root) {
  static std::map<std::string, Sources> read;
  auto& sources = read[root];
  if (!sources.empty()) return sources;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_directory + root)) {
    const auto extension = entry.path().extension();
    if (extension == ".cpp" || extension == ".hpp")
      sources.emplace(entry.path(), read_file(entry.path().string()));
  }
  return sources;
}

/// What to look for within a line.
struct Wanted {
  std::string word;  ///< of each line that matches; to match all lines takes seconds
  Pattern form;
};

std::vector<std::string> matches_of(const std::string& text, const Wanted& wanted) {
  std::vector<std::string> found;
  for (auto at = text.find(wanted.word); at != std::string::npos;) {
    const auto begin = text.rfind('\n', at) + 1;
    const auto end = std::min(text.find('\n', at), text.size());
    for (const auto& match : wanted.form.all(std::string_view(text).substr(begin, end - begin)))
      found.push_back(match[1]);
    at = text.find(wanted.word, end);
  }
  return found;
}

/// Each file below `roots` that includes what `wanted` catches, as `HEADER in FILE`, in alphabetical order.
std::vector<std::string> places_of(const Wanted& wanted, const std::vector<std::string>& roots) {
  std::vector<std::string> places;
  for (const auto& root : roots) {
    const auto& sources = sources_below(root);
    INFO(root);
    CHECK(sources.size() > 50);
    for (const auto& [path, text] : sources) {
      for (const auto& header : matches_of(text, wanted))
        places.push_back(header + " in " + path.lexically_relative(source_directory).string());
    }
  }
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

TEST_CASE("a directory of core includes only those below it") {
  const std::filesystem::path core = source_directory + "/core";
  const Wanted wanted{"#include", Pattern(R"re(#include "([a-z_]+)/[a-z_0-9/]+\.hpp")re")};
  const auto level_of = levels();
  int checked = 0;
  for (const auto& [path, text] : sources_below("/core")) {
    const auto directory = path.lexically_relative(core).begin()->string();
    INFO(path);
    REQUIRE(level_of.count(directory) == 1);
    for (const auto& included : matches_of(text, wanted)) {
      INFO(included);
      REQUIRE(level_of.count(included) == 1);
      CHECK((included == directory || level_of.at(included) < level_of.at(directory)));
      ++checked;
    }
  }
  CHECK(checked > 300);
  for (const auto& [directory, level] : level_of) {
    INFO(directory);
    CHECK(std::filesystem::is_directory(core / directory));
  }
}

/// The namespace of the files of a directory: that of a driver is its own, and `base` has the names of the
/// house.
std::string namespace_of(const std::filesystem::path& file) {
  const auto path = file.lexically_relative(source_directory);
  std::vector<std::string> parts;
  for (const auto& part : path)
    parts.push_back(part.string());
  if (parts[0] == "cmd") return "mailroom::cmd";
  if (parts[1] == "base") return "mailroom";
  if (parts[1] == "carriers" && parts.size() > 3) return "mailroom::" + parts[2];
  return "mailroom::" + parts[1];
}

TEST_CASE("each file of core and cmd has the namespace of its directory") {
  // A type or a function of another directory may be declared before it.
  for (const std::string root : {"/core", "/cmd"}) {
    for (const auto& [path, text] : sources_below(root)) {
      INFO(path);
      const auto own = "\nnamespace " + namespace_of(path);
      CHECK((text.find(own + " {") != std::string::npos || text.find(own + "::") != std::string::npos));
    }
  }
}

// Two types of one name with different members break at run time, since the linker keeps the functions of one
// of them.
TEST_CASE("no two headers define a type of the same name") {
  const Pattern form(R"re(\n(?:struct|class|enum class) (\w+(?:::\w+)*)[^;{]*\{)re");
  std::map<std::string, std::string> defined_in;
  for (const std::string root : {"/core", "/cmd"}) {
    for (const auto& [path, text] : sources_below(root)) {
      if (path.extension() != ".hpp") continue;
      for (const auto& match : form.all(text)) {
        const auto [first, is_new] = defined_in.emplace(namespace_of(path) + "::" + match[1], path.string());
        INFO(match[1] << " in " << first->second << " and " << path);
        CHECK((is_new || first->second == path.string()));
      }
    }
  }
  CHECK(defined_in.size() > 150);
}

TEST_CASE("only the syntax of commands includes the parser library") {
  const std::filesystem::path cmd = source_directory + "/cmd";
  const Wanted wanted{"#include", Pattern(R"re(#include <(CLI/[^>]+)>)re")};
  int seen = 0;
  for (const auto& [path, text] : sources_below("/cmd")) {
    if (matches_of(text, wanted).empty()) continue;
    INFO(path);
    CHECK(path.parent_path() == cmd / "syntax");
    ++seen;
  }
  CHECK(seen > 0);
}

TEST_CASE("libidn2 is included by one file") {
  CHECK(places_of({"#include", Pattern(R"re(#include <(idn2.h)>)re")}, {"/core", "/cmd"}) ==
        std::vector<std::string>{"idn2.h in core/mail/address.cpp"});
}

TEST_CASE("the library for regular expressions is included by one file, of tests too") {
  CHECK(places_of({"include", Pattern(R"re(#\s*include\s*<(regex)>)re")}, {"/core", "/cmd", "/tests"}) ==
        std::vector<std::string>{"regex in core/base/pattern.cpp"});
}

TEST_CASE("the library for JSON is included by one header, of tests too") {
  CHECK(places_of({"include", Pattern(R"re(#\s*include\s*<(nlohmann/json.hpp)>)re")},
                  {"/core", "/cmd", "/tests"}) ==
        std::vector<std::string>{"nlohmann/json.hpp in core/base/json.hpp"});
}

// Its parser takes a second to compile in each file that calls it.
TEST_CASE("JSON is parsed and written by one file") {
  CHECK(places_of({"son::", Pattern(R"re([jJ]son::(parse|sax_parse|accept)\()re")}, {"/core", "/cmd"}) ==
        std::vector<std::string>{"parse in core/base/json.cpp", "parse in core/base/json.cpp",
                                 "parse in core/base/json.cpp", "parse in core/base/json.cpp",
                                 "sax_parse in core/base/json.cpp"});
  CHECK(places_of({".dump(", Pattern(R"re(\.(dump)\()re")}, {"/core", "/cmd"}) ==
        std::vector<std::string>{"dump in core/base/json.cpp"});
}

// So does what formats: fmt::format_to() and fmt::join() compile much of it in each file that calls them.
TEST_CASE("text is formatted by one file") {
  CHECK(places_of({"fmt::", Pattern(R"re(fmt::(format_to)\()re")}, {"/core", "/cmd"}).empty());
  CHECK(places_of({"fmt::", Pattern(R"re(fmt::(vformat_to)\()re")}, {"/core", "/cmd"}) ==
        std::vector<std::string>{"vformat_to in core/base/text.cpp"});
  CHECK(places_of({"fmt::", Pattern(R"re(fmt::(join)\()re")}, {"/core", "/cmd"}).empty());
}

/// The lines of `text` that read a field of a row by its place, or with a row of libpqxx, which allows that.
std::vector<std::string> positional_reads(const std::string& text) {
  static const Pattern form(
      R"re((\brow\[[^"]|\brows?(?:\[\w+\]|\.front\(\))\[|\)\[\d+\]\[|\[[^\]"]*\]\.(?:template )?(?:as<|c_str\(\)|is_null\(\))|\bpqxx::(?:row|result|field)\b))re");
  std::vector<std::string> found;
  for (const auto line : split(text, '\n')) {
    const bool may_read =
        line.find('[') != std::string_view::npos || line.find("pqxx::") != std::string_view::npos;
    if (may_read && !form.all(line).empty()) found.emplace_back(line);
  }
  return found;
}

TEST_CASE("a row is read by the names of its columns") {
  for (const auto* line : {"row[0].as<int>()", "rows[0][1].c_str()", "rows[i][first + 2]", "run(sql)[0][0]",
                           "each[column].as<long>()", "line[2].is_null()", "row[7].template as<bool>()",
                           "const pqxx::row& row", "row[place]"})
    CHECK(positional_reads(line).size() == 1);
  for (const auto* line : {"rows[0].text(\"name\")", "row.number(\"id\")", "run(sql)[0];"})
    CHECK(positional_reads(line).empty());
  int seen = 0;
  for (const std::string root : {"/core", "/cmd"}) {
    for (const auto& [path, text] : sources_below(root)) {
      // Only those that use the database, and not what hides the library.
      const auto name = path.lexically_relative(source_directory).string();
      if (text.find("db::") == std::string::npos || name.starts_with("core/db/pqxx_compat.") ||
          name.starts_with("core/db/rows."))
        continue;
      INFO(name);
      CHECK(positional_reads(text) == std::vector<std::string>{});
      ++seen;
    }
  }
  CHECK(seen > 150);
}

}  // namespace mailroom::test::include_direction_test
