// Which directory of core/ includes which, and that only one place includes a library that takes long to
// compile.

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/pattern.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::include_direction_test {
namespace {

/// A directory may include its own headers and those of lower levels.
const std::map<std::string, int> level_of{
    {"base", 0},       {"mail", 3},   {"delivery", 7},    {"compose", 8},   {"service", 7}, {"config", 1},
    {"crypto", 1},     {"fate", 1},   {"db", 2},          {"process", 3},   {"queue", 4},   {"schema", 3},
    {"signing", 3},    {"claim", 5},  {"accounts", 5},    {"consumer", 6},  {"prune", 5},   {"replay", 5},
    {"simulation", 5}, {"status", 5}, {"events", 6},      {"metrics", 7},   {"audit", 7},   {"feed", 7},
    {"carriers", 8},   {"doctor", 9}, {"reconcile", 8},   {"selection", 2}, {"actions", 3}, {"messages", 5},
    {"outcomes", 8},   {"bounce", 2}, {"suppression", 5}, {"listen", 2},    {"webhook", 9}, {"preview", 9},
    {"trace", 1},      {"otlp", 9},   {"health", 6},      {"templates", 4}, {"reasons", 1}};

std::vector<std::string> matches_of(const std::filesystem::path& file, const Pattern& form) {
  std::vector<std::string> found;
  for (const auto& match : form.all(read_file(file.string())))
    found.push_back(match[1]);
  return found;
}

template <typename Visit>
void each_source(const std::filesystem::path& root, Visit visit) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const auto extension = entry.path().extension();
    if (extension == ".cpp" || extension == ".hpp") visit(entry.path());
  }
}

/// Each file below `roots` that includes what `form` catches, as `HEADER in FILE`, in alphabetical order.
std::vector<std::string> places_of(const Pattern& form, const std::vector<std::string>& roots) {
  std::vector<std::string> places;
  for (const auto& root : roots) {
    int files = 0;
    each_source(source_directory + root, [&](const auto& path) {
      ++files;
      for (const auto& header : matches_of(path, form))
        places.push_back(header + " in " + path.lexically_relative(source_directory).string());
    });
    INFO(root);
    CHECK(files > 50);
  }
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

TEST_CASE("a directory of core includes only those below it") {
  const std::filesystem::path core = source_directory + "/core";
  const Pattern form(R"re(#include "([a-z]+)/[a-z_0-9/]+\.hpp")re");
  int checked = 0;
  each_source(core, [&](const auto& path) {
    const auto directory = path.lexically_relative(core).begin()->string();
    INFO(path);
    REQUIRE(level_of.count(directory) == 1);
    for (const auto& included : matches_of(path, form)) {
      INFO(included);
      REQUIRE(level_of.count(included) == 1);
      CHECK((included == directory || level_of.at(included) < level_of.at(directory)));
      ++checked;
    }
  });
  CHECK(checked > 300);
}

// Two types of one name with different members break at run time, since the linker keeps the functions of one
// of them.
TEST_CASE("no two headers define a type of the same name") {
  const Pattern form(R"re(\n(?:struct|class|enum class) (\w+(?:::\w+)*)[^;{]*\{)re");
  std::map<std::string, std::string> defined_in;
  for (const std::string root : {"/core", "/cmd"}) {
    each_source(source_directory + root, [&](const auto& path) {
      if (path.extension() != ".hpp") return;
      for (const auto& name : matches_of(path, form)) {
        const auto [first, is_new] = defined_in.emplace(name, path.string());
        INFO(name << " in " << first->second << " and " << path);
        CHECK((is_new || first->second == path.string()));
      }
    });
  }
  CHECK(defined_in.size() > 150);
}

TEST_CASE("only the syntax of commands includes the parser library") {
  const std::filesystem::path cmd = source_directory + "/cmd";
  const Pattern form(R"re(#include <(CLI/[^>]+)>)re");
  int seen = 0;
  each_source(cmd, [&](const auto& path) {
    if (matches_of(path, form).empty()) return;
    INFO(path);
    CHECK(path.parent_path() == cmd / "syntax");
    ++seen;
  });
  CHECK(seen > 0);
}

TEST_CASE("libidn2 is included by one file") {
  CHECK(places_of(Pattern(R"re(#include <(idn2.h)>)re"), {"/core", "/cmd"}) ==
        std::vector<std::string>{"idn2.h in core/mail/address.cpp"});
}

TEST_CASE("the library for regular expressions is included by one file, of tests too") {
  CHECK(places_of(Pattern(R"re(#\s*include\s*<(regex)>)re"), {"/core", "/cmd", "/tests"}) ==
        std::vector<std::string>{"regex in core/base/pattern.cpp"});
}

TEST_CASE("the library for JSON is included by one header, of tests too") {
  CHECK(places_of(Pattern(R"re(#\s*include\s*<(nlohmann/json.hpp)>)re"), {"/core", "/cmd", "/tests"}) ==
        std::vector<std::string>{"nlohmann/json.hpp in core/base/json.hpp"});
}

// Its parser takes a second to compile in each file that calls it.
TEST_CASE("JSON is parsed and written by one file") {
  CHECK(places_of(Pattern(R"re([jJ]son::(parse|sax_parse|accept)\()re"), {"/core", "/cmd"}) ==
        std::vector<std::string>{"parse in core/base/json.cpp", "parse in core/base/json.cpp",
                                 "parse in core/base/json.cpp", "parse in core/base/json.cpp",
                                 "sax_parse in core/base/json.cpp"});
  CHECK(places_of(Pattern(R"re(\.(dump)\()re"), {"/core", "/cmd"}) ==
        std::vector<std::string>{"dump in core/base/json.cpp"});
}

// So does what formats: fmt::format_to() and fmt::join() compile much of it in each file that calls them.
TEST_CASE("text is formatted by one file") {
  CHECK(places_of(Pattern(R"re(fmt::(format_to)\()re"), {"/core", "/cmd"}).empty());
  CHECK(places_of(Pattern(R"re(fmt::(vformat_to)\()re"), {"/core", "/cmd"}) ==
        std::vector<std::string>{"vformat_to in core/base/text.cpp"});
  CHECK(places_of(Pattern(R"re(fmt::(join)\()re"), {"/core", "/cmd"}).empty());
}

}  // namespace mailroom::test::include_direction_test
