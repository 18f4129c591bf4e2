// The rows of a statement, read by the names of their columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace mailroom::db {

/// A literal, so that its address stands for the name.
class ColumnName {
 public:
  consteval ColumnName(const char* text) : text_(text) {}
  const char* text() const { return text_; }

 private:
  const char* text_;
};

/// Where the columns of a result are. Searches for each name of the code once, however many rows there are.
class ColumnPlaces {
 public:
  explicit ColumnPlaces(pqxx::result result) : result_(std::move(result)) {}

  static constexpr int none = -1;
  /// `none` if the result has no such column.
  int find(ColumnName name) {
    for (const auto& [known, place] : known_) {
      if (known == name.text()) return place;
    }
    return search(name);
  }

 private:
  int search(ColumnName name);
  pqxx::result result_;
  std::vector<std::pair<const char*, int>> known_;
};

/// One row. Each member throws std::logic_error if the result has no column of that name. Those that return
/// no optional throw at a null, apart from text() and view(), for which it is empty.
class Row {
 public:
  Row(const pqxx::row& row, std::shared_ptr<ColumnPlaces> places)
      : field_(row.begin()), places_(std::move(places)) {}

  bool has_column(ColumnName name) const { return places_->find(name) != ColumnPlaces::none; }
  bool is_null(ColumnName name) const { return field(name).is_null(); }
  std::string text(ColumnName name) const { return std::string(view(name)); }
  /// Valid as long as the result.
  std::string_view view(ColumnName name) const {
    const auto& found = field(name);
    return {found.c_str(), found.size()};
  }
  template <typename Number = std::int64_t>
  Number number(ColumnName name) const {
    return field(name).template as<Number>();
  }
  bool flag(ColumnName name) const { return field(name).template as<bool>(); }
  /// A number of `Unit` since 1970: seconds, or microseconds with microseconds_sql(). See bounded_moment().
  template <typename Unit>
  Moment moment(ColumnName name) const {
    return bounded_moment(Unit(number(name)));
  }

  /// nullopt for a null.
  template <typename Value>
  std::optional<Value> optional(ColumnName name) const {
    const auto& found = field(name);
    return found.is_null() ? std::nullopt : std::optional<Value>(found.template as<Value>());
  }
  template <typename Unit>
  std::optional<Moment> optional_moment(ColumnName name) const {
    const auto value = optional<std::int64_t>(name);
    return value ? std::optional(bounded_moment(Unit(*value))) : std::nullopt;
  }

  /// By place, for tests alone.
  pqxx::field operator[](int place) const { return at(place); }

 private:
  const pqxx::field& field(ColumnName name) const {
    const int place = places_->find(name);
    if (place == ColumnPlaces::none) throw_missing(name);
    return at(place);
  }
  /// Moves to it: another field would count its references to the result with two atomic operations.
  const pqxx::field& at(int place) const {
    field_ += place - static_cast<int>(field_.num());
    return *field_.operator->();
  }
  [[noreturn]] static void throw_missing(ColumnName name);

  mutable pqxx::row::const_iterator field_;
  std::shared_ptr<ColumnPlaces> places_;
};

/// What a statement returned. For one thread at a time, with its copies and rows.
class Rows {
 public:
  Rows() : Rows(pqxx::result()) {}
  Rows(pqxx::result result) : result_(std::move(result)), places_(std::make_shared<ColumnPlaces>(result_)) {}

  std::size_t size() const { return static_cast<std::size_t>(result_.size()); }
  bool empty() const { return result_.empty(); }
  std::size_t affected_rows() const { return static_cast<std::size_t>(result_.affected_rows()); }
  Row operator[](std::size_t index) const {
    return {result_[static_cast<pqxx::result::size_type>(index)], places_};
  }

  /// The only value of the only row, which a statement that asks for one returns whatever the tables have.
  template <typename Value>
  Value value() const {
    return one_field().template as<Value>();
  }
  /// The same as text; a null is empty.
  std::string text() const { return one_field().c_str(); }
  /// The same as Row::moment().
  template <typename Unit>
  Moment moment() const {
    return bounded_moment(Unit(value<std::int64_t>()));
  }
  /// The values of the only column.
  template <typename Value>
  std::vector<Value> values() const {
    require_one_column();
    std::vector<Value> all;
    all.reserve(size());
    for (const auto& row : result_)
      all.push_back(row[0].template as<Value>());
    return all;
  }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Row;

    Iterator(const Rows& rows, std::size_t index) : rows_(&rows), index_(index) {}
    Row operator*() const { return (*rows_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const Rows* rows_;
    std::size_t index_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  pqxx::field one_field() const;
  void require_one_column() const;

  pqxx::result result_;
  std::shared_ptr<ColumnPlaces> places_;
};

}  // namespace mailroom::db
