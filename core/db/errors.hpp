// What goes wrong with a database: refused statements, lost sessions, and which retry helps.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace mailroom::db {

/// The SQLSTATEs that this program tells apart: PostgreSQL's (appendix A of its manual), and mailroom's own
/// (see the header of the claim's migration).
namespace sqlstate {
constexpr std::string_view unknown_queue = "MR001";
constexpr std::string_view sequence_behind = "MR002";
constexpr std::string_view not_reached = "MR004";
constexpr std::string_view replays_too_many = "MR005";
constexpr std::string_view pid_locked = "MR006";
constexpr std::string_view not_at_home = "MR009";
constexpr std::string_view over_limit = "MR010";
constexpr std::string_view out_of_range = "22003";
constexpr std::string_view invalid_text = "22021";
constexpr std::string_view untranslatable = "22P05";
constexpr std::string_view unique_violation = "23505";
constexpr std::string_view read_only = "25006";
constexpr std::string_view serialization_failure = "40001";
constexpr std::string_view deadlock = "40P01";
constexpr std::string_view insufficient_privilege = "42501";
constexpr std::string_view undefined_column = "42703";
constexpr std::string_view undefined_function = "42883";
constexpr std::string_view undefined_object = "42704";
constexpr std::string_view undefined_table = "42P01";
constexpr std::string_view lock_not_available = "55P03";
constexpr std::string_view query_cancelled = "57014";
constexpr std::string_view io_error = "58030";
}  // namespace sqlstate

/// The server refused a statement. The message is PostgreSQL's, on one line.
class DatabaseError : public Error {
 public:
  DatabaseError(ExitCode code, const std::string& message, const std::string& hint, std::string state,
                int line = 0)
      : Error(code, message, hint), sqlstate_(std::move(state)), line_(line) {}

  const std::string& sqlstate() const { return sqlstate_; }
  /// The line of the statement, from 1; 0 if unknown.
  int line() const { return line_; }

 private:
  std::string sqlstate_;
  int line_;
};

/// `state`, but io_error where a file system that is read-only is the matter: PostgreSQL says
/// insufficient_privilege of it (errcode_for_file_access() of its source), as of a role without a right.
/// `source`: the file of that source that reports it, if known; without it, only an English message tells.
std::string_view settled_sqlstate(std::string_view state, std::string_view message,
                                  std::string_view source = {});

/// True for an error of a statement, not of the session, that a retry may fix: lock timeout, statement
/// timeout or cancel request, deadlock, serialization failure.
bool is_transient(const DatabaseError& error);

enum class Retry { none, same_session, new_session };

/// How to retry after an error of the database. A server that refuses writes is not the primary (yet): during
/// a failover a new session may reach the primary.
Retry retry_for(const Error& error);

/// True if another session holds the advisory lock of this session's pid. A new session has another pid.
bool is_pid_locked(const Error& error);

/// Message and hint on one line.
std::string reason_of(const Error& error);

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

}  // namespace mailroom::db
