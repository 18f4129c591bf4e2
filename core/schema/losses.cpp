#include "schema/losses.hpp"

#include <algorithm>
#include <sstream>

namespace mailroom {
std::vector<Loss> declared_losses(const std::string& sql) {
  std::vector<Loss> losses;
  std::istringstream lines(sql);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string dashes, deletes, kind, name;
    words >> dashes >> deletes >> kind >> name;
    const auto dot = std::min(name.find('.'), name.size());
    const bool is_valid = kind == (dot < name.size() ? "column" : "table");
    if (dashes != "--" || deletes != "deletes:" || !is_valid) continue;
    losses.push_back({.table = name.substr(0, dot), .column = name.substr(std::min(dot + 1, name.size()))});
  }
  return losses;
}

std::vector<Loss> count_losses(Connection& connection, const MigrationSteps& steps) {
  std::vector<Loss> losses;
  for (const auto& step : steps) {
    for (auto loss : declared_losses(step.text())) {
      const auto count = connection.run(
          "SELECT format('SELECT count(%s) FROM %I', coalesce(quote_ident(nullif($2::text, '')), '*'), "
          "$1::text) FROM pg_attribute "
          "WHERE attrelid = to_regclass(format('%I.%I', current_schema(), $1::text)) AND NOT attisdropped "
          "AND $2::text IN ('', attname::text) LIMIT 1",
          loss.table, loss.column);
      if (count.empty()) continue;
      loss.rows = connection.run(count[0][0].c_str())[0][0].as<std::int64_t>();
      losses.push_back(std::move(loss));
    }
  }
  return losses;
}

}  // namespace mailroom
