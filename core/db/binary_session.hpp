// A session by libpq itself, for what libpqxx lacks: arrays as binary values, no copy of a mail but theirs, a
// user and a password of somebody else, and whether the server asked for that.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "db/conninfo.hpp"

struct pg_conn;  // of libpq

namespace mailroom::db {

/// An array of one dimension, as PostgreSQL has it in binary form.
class BinaryArray {
 public:
  enum class Element : std::uint32_t { text = 25, bytea = 17, timestamptz = 1184, jsonb = 3802 };

  BinaryArray(Element element, std::size_t count);
  void add(std::string_view value);
  void add_null();
  void add(Moment moment);
  void add_or_null(std::string_view value) { value.empty() ? add_null() : add(value); }
  const std::string& bytes() const { return bytes_; }
  /// The type of the array.
  std::uint32_t type() const;

 private:
  void put(std::uint32_t number);

  Element element_;
  std::string bytes_;
};

/// Why a statement has no result.
struct StatementFailure {
  std::string sqlstate{};  ///< empty: the session has ended
  std::string message{};
  std::string hint{};
  std::string detail{};
  std::size_t statement = 0;  ///< of a transaction: which of them
};

/// A statement and its parameters, as texts.
struct Statement {
  std::string sql{};
  std::vector<std::string> values{};
};

/// Rows of texts by the names of their columns; a null is empty.
using TextRows = std::vector<std::map<std::string, std::string, std::less<>>>;

/// Not thread-safe.
class BinarySession {
 public:
  /// Connects as `user`; without a password by the means of the target: a password file, or the user of this
  /// process. is_open() and problem() say whether that worked. `answer`: how long to wait for the server.
  BinarySession(const DatabaseTarget& target, const std::string& user, const std::string& password,
                const std::string& application_name, Milliseconds answer);

  bool is_open() const;
  /// True if the server has asked for the password.
  bool used_password() const;
  /// The words of libpq or the server, in one line.
  std::string problem() const;

  std::variant<TextRows, StatementFailure> run(const std::string& sql);
  /// Prepares the statement once. It is a transaction of its own: when the rows are here, it is committed.
  std::variant<TextRows, StatementFailure> run_prepared(const std::string& name, const std::string& sql,
                                                        const std::vector<const BinaryArray*>& values);
  /// Runs the statements as one transaction, in one round trip, and returns the rows of each. It is committed
  /// when they are here. None of them is stored if one fails.
  std::variant<std::vector<TextRows>, StatementFailure> transact(const std::vector<Statement>& statements);

 private:
  struct Close {
    void operator()(pg_conn* session) const;
  };
  void connect_until(TimePoint end);

  std::unique_ptr<pg_conn, Close> session_;
  std::string late_problem_;
  std::vector<std::string> prepared_;
};

}  // namespace mailroom::db
