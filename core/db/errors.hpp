#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace mailroom {

/// The server refused a statement. The message is PostgreSQL's, on one line.
class DatabaseError : public Error {
 public:
  DatabaseError(ExitCode code, const std::string& message, const std::string& hint, std::string sqlstate,
                int line = 0)
      : Error(code, message, hint), sqlstate_(std::move(sqlstate)), line_(line) {}

  /// Five characters: see appendix A of PostgreSQL's manual; `MR…` are mailroom's, see the header of the
  /// claim's migration.
  const std::string& sqlstate() const { return sqlstate_; }
  /// The line of the statement, from 1; 0 if unknown.
  int line() const { return line_; }

 private:
  std::string sqlstate_;
  int line_;
};

/// True for an error of a statement, not of the session, that a retry may fix: lock timeout, statement
/// timeout or cancel request, deadlock, serialization failure.
bool is_transient(const DatabaseError& error);

/// True if the server is a standby or read-only: a new session may reach the primary.
bool takes_no_writes(const DatabaseError& error);

/// True if a statement named a table, column, function, type or other object that is missing.
bool tells_of_damage(const DatabaseError& error);

/// `error`; if tells_of_damage(), as Error(schema) with a hint at how to find the damage.
Error explained_damage(const DatabaseError& error);

/// The session was lost or could not be opened; a new one may succeed. ExitCode::database.
class ConnectionLost : public Error {
 public:
  explicit ConnectionLost(const std::string& message, const std::string& hint = {})
      : Error(ExitCode::database, message, hint) {}
};

/// Must be called in a catch block. Converts an exception of libpqxx to one of the above; rethrows others as
/// they are. If the session is not open, every failure of libpqxx becomes ConnectionLost; `heard`, libpq's
/// last message on the session, may give the server's reason. Throws Error(configuration) if a pooler ended
/// the session because of its mode.
[[noreturn]] void rethrow_database_error(bool session_is_open, std::string_view heard);

}  // namespace mailroom
