// Finds the place of a column, and the value of a row that has one.

#include "db/rows.hpp"

#include <fmt/format.h>
#include <stdexcept>

namespace mailroom::db {

int ColumnPlaces::search(ColumnName name) {
  const std::string_view wanted = name.text();
  int found = none;
  for (pqxx::row::size_type place = 0; place < result_.columns() && found == none; ++place) {
    if (wanted == result_.column_name(place)) found = static_cast<int>(place);
  }
  known_.emplace_back(name.text(), found);
  return found;
}

void Row::throw_missing(ColumnName name) {
  throw std::logic_error(fmt::format("the result of a statement has no column \"{}\"", name.text()));
}

void Rows::require_one_column() const {
  if (result_.columns() != 1)
    throw std::logic_error(fmt::format("a statement for one column returned {}", result_.columns()));
}

pqxx::field Rows::one_field() const {
  require_one_column();
  if (result_.size() != 1)
    throw std::logic_error(fmt::format("a statement for one row returned {}", result_.size()));
  return result_[0][0];
}

}  // namespace mailroom::db
