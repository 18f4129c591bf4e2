#include "doctor/creating_statement.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace mailroom {
namespace {

/// The position of `CREATE … KIND name`, where the name is followed by a space or a parenthesis; npos if
/// absent.
std::size_t find_creation(const std::string& sql, const std::string& kind, const std::string& name) {
  for (const std::string create : {"\nCREATE ", "\nCREATE OR REPLACE "}) {
    const auto start = create + kind + " " + name;
    const auto at = sql.rfind(start);
    if (at == std::string::npos) continue;
    const auto after = at + start.size();
    if (after < sql.size() && (sql[after] == ' ' || sql[after] == '(')) return at + 1;
  }
  return std::string::npos;
}

std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (blank && line.ends_with(' ')) continue;
    line += blank ? ' ' : c;
  }
  return line;
}

}  // namespace

CreatingStatement creating_statement(const std::vector<Migration>& migrations, const std::string& kind,
                                     const std::string& name) {
  for (auto migration = migrations.rbegin(); migration != migrations.rend(); ++migration) {
    const auto sql = "\n" + migration->up;
    const auto at = find_creation(sql, kind, name);
    if (at == std::string::npos) continue;
    const auto end = std::min(sql.find(';', at), sql.size() - 1);
    return {.migration = fmt::format("{}_{}", migration->version, migration->name),
            .text = in_one_line(sql.substr(at, end + 1 - at))};
  }
  return {};
}

}  // namespace mailroom
