#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace mailroom {

/// The server said no to a statement. The message is PostgreSQL's own, in one line.
class DatabaseError : public Error {
 public:
  DatabaseError(ExitCode code, const std::string& message, const std::string& hint, std::string sqlstate,
                int line = 0)
      : Error(code, message, hint), sqlstate_(std::move(sqlstate)), line_(line) {}

  /// Five characters, see appendix A of PostgreSQL's manual; `MR…` are ours, see the header of the claim's
  /// migration.
  const std::string& sqlstate() const { return sqlstate_; }
  /// In which line of the statement, from 1; 0 where PostgreSQL does not say.
  int line() const { return line_; }

 private:
  std::string sqlstate_;
  int line_;
};

/// True for an error of a statement, not of the session, that trying again mends: a timeout set for the role,
/// a cancel request, a deadlock, a serialization failure.
bool is_transient(const DatabaseError& error);

/// True when the server is a standby, or was made read-only: the primary, once a new session leads to it,
/// does better.
bool takes_no_writes(const DatabaseError& error);

/// True when a table, column, function, type or other object is not there that a statement of ours names.
bool tells_of_damage(const DatabaseError& error);

/// `error`, of a statement that reads our schema: where that is damaged with what to do about it.
Error explained_damage(const DatabaseError& error);

/// There is no session (any more): a new one may do better. ExitCode::database.
class ConnectionLost : public Error {
 public:
  explicit ConnectionLost(const std::string& message, const std::string& hint = {})
      : Error(ExitCode::database, message, hint) {}
};

/// To be called in a catch block: throws what libpqxx threw as one of the above; everything else as it is. On
/// a session that is not open any more every failure of libpqxx means that it is lost; `heard` is what libpq
/// heard last on it, which says why where the server did. Throws Error(configuration) when it was a pooler
/// that ended it because of its mode.
[[noreturn]] void rethrow_database_error(bool session_is_open, std::string_view heard);

}  // namespace mailroom
