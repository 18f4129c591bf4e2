#include "schema/losses.hpp"

#include <algorithm>
#include <sstream>

namespace mailroom {
namespace {

std::int64_t counted(Connection& connection, const Loss& loss) {
  return connection.alone([&](pqxx::transaction_base& transaction) {
    const auto what = loss.column.empty() ? std::string("*") : transaction.quote_name(loss.column);
    return Connection::execute(transaction,
                               "SELECT count(" + what + ") FROM " + transaction.quote_name(loss.table))[0][0]
        .as<std::int64_t>();
  });
}

bool exists(Connection& connection, const Loss& loss) {
  return connection
      .run(
          "SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = "
          "to_regclass(format('%I.%I', current_schema(), $1::text)) AND NOT attisdropped AND $2::text IN "
          "('', "
          "attname::text))",
          loss.table, loss.column)[0][0]
      .as<bool>();
}

}  // namespace

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
      if (!exists(connection, loss)) continue;
      loss.rows = counted(connection, loss);
      losses.push_back(std::move(loss));
    }
  }
  return losses;
}

}  // namespace mailroom
