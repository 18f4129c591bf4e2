
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::exit_codes_test {
namespace {

/// The rows of the table in docs/exit-codes.md below its heading, without Markdown's markup.
std::vector<std::vector<std::string>> documented() {
  std::istringstream text(test::read_file(test::source_directory + "/docs/exit-codes.md"));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(text, line);) {
    if (line.rfind("| ", 0) != 0 || line.rfind("| code", 0) == 0) continue;
    line.erase(std::remove(line.begin(), line.end(), '`'), line.end());
    std::istringstream cells(line.substr(1));
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, '|');) {
      const auto from = std::min(cell.find_first_not_of(' '), cell.size());
      row.push_back(cell.substr(from, cell.find_last_not_of(' ') + 1 - from));
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

TEST_CASE("docs/exit-codes.md has the same exit statuses as the program") {
  const auto rows = documented();
  REQUIRE(rows.size() == exit_statuses().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& entry = exit_statuses()[i];
    INFO(entry.status);
    REQUIRE(rows[i].size() == 3);
    CHECK(rows[i][0] == entry.status);
    CHECK(rows[i][1] == entry.meaning);
    CHECK(rows[i][2] == entry.fix);
  }
}

TEST_CASE("every exit code that a run can return is explained") {
  const auto last = static_cast<int>(ExitCode::output_closed);
  for (int code = 0; code <= last; ++code)
    CHECK(exit_statuses()[static_cast<std::size_t>(code)].status == std::to_string(code));
}

}  // namespace mailroom::test::exit_codes_test
