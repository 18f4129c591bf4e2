// Parses the lines `-- deletes:` of the migrations, and counts the rows and values that exist now.

#include "schema/losses.hpp"

#include <algorithm>
#include <sstream>

#include "base/text.hpp"

namespace mailroom {
std::vector<Loss> declared_losses(const std::string& sql) {
  std::vector<Loss> losses;
  std::istringstream lines(sql);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string dashes, deletes, kind, name;
    words >> dashes >> deletes >> kind >> name;
    const auto dot = std::min(name.find('.'), name.size());
    std::string condition;
    if (kind == "rows") std::getline(words, condition);
    condition = std::string(trimmed(condition));
    const bool is_valid =
        kind == "rows" ? condition.starts_with("WHERE ") : kind == (dot < name.size() ? "column" : "table");
    if (dashes != "--" || deletes != "deletes:" || !is_valid) continue;
    losses.push_back({.table = name.substr(0, dot),
                      .column = name.substr(std::min(dot + 1, name.size())),
                      .condition = condition});
  }
  return losses;
}

std::vector<Loss> count_losses(Connection& connection, const MigrationSteps& steps) {
  std::vector<Loss> losses;
  for (const auto& step : steps) {
    for (auto loss : declared_losses(step.text())) {
      const auto count = connection.run(
          "SELECT format('SELECT count(%s) FROM %I %s', coalesce(quote_ident(nullif($2::text, '')), '*'), "
          "$1::text, $3::text) FROM pg_attribute "
          "WHERE attrelid = to_regclass(format('%I.%I', current_schema(), $1::text)) AND NOT attisdropped "
          "AND $2::text IN ('', attname::text) LIMIT 1",
          loss.table, loss.column, loss.condition);
      if (count.empty()) continue;
      loss.rows = connection.run(count[0][0].c_str())[0][0].as<std::int64_t>();
      for (const auto& earlier : losses) {
        const bool is_part =
            earlier.table == loss.table && !earlier.condition.empty() && loss.name() == loss.table;
        if (is_part) loss.rows -= earlier.rows;
      }
      losses.push_back(std::move(loss));
    }
  }
  return losses;
}

}  // namespace mailroom
