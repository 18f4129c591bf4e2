#include "db/errors.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <pqxx/pqxx>
#include <string_view>

#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr std::string_view read_only_state = "25006";

/// What PostgreSQL's report says under one of its labels, `ERROR`, `DETAIL` or `HINT`; empty if it is not
/// there.
std::string labelled(std::string_view report, std::string_view label) {
  const std::string marker = std::string(label) + ":  ";
  const auto start = report.find(marker);
  if (start == std::string_view::npos) return {};
  const auto text = report.substr(start + marker.size());
  return std::string(text.substr(0, text.find('\n')));
}

/// `LINE 3: …` of a report that is about our own text, not about one that a function runs.
int line_of(std::string_view report) {
  constexpr std::string_view marker = "\nLINE ";
  const auto start = report.find(marker);
  if (start == std::string_view::npos || report.find("\nQUERY:") != std::string_view::npos) return 0;
  int line = 0;
  const auto* first = report.data() + start + marker.size();
  std::from_chars(first, report.data() + report.size(), line);
  return line;
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

/// libpq's report on a connection has a line for each address tried, and further ones that explain.
std::string one_line(std::string_view report) {
  std::string text;
  for (std::size_t end = 0; !report.empty(); report.remove_prefix(std::min(end + 1, report.size()))) {
    end = std::min(report.find('\n'), report.size());
    auto line = report.substr(0, end);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!text.empty() && !line.empty()) text += "; ";
    text += line;
  }
  return text;
}

/// What libpqxx says by itself of a session that the server has ended speaks of other things, and libpqxx 6
/// says nothing else.
std::string reason_of_loss(std::string_view report) {
  constexpr std::array<std::string_view, 3> of_libpqxx{"Connection to database failed",
                                                       "Lost connection to the database server",
                                                       "Could not obtain client encoding: not connected."};
  const bool is_its_own = std::any_of(of_libpqxx.begin(), of_libpqxx.end(),
                                      [&](std::string_view own) { return report.starts_with(own); });
  return is_its_own ? "the session has ended" : one_line(report);
}

/// `said` unless the server, or a pooler before it, has said why it ended the session.
[[noreturn]] void throw_lost(std::string_view heard, const std::string& said) {
  const auto last_word = labelled(heard, "FATAL");
  // What a variable of libpq names wrongly is quoted by libpq and by the server.
  const auto reason = without_passwords(last_word.empty() ? said : last_word);
  if (reason.find("statement pooling mode") == std::string::npos) throw ConnectionLost(reason);
  throw Error(
      ExitCode::configuration, reason,
      "a pooler in statement mode is between: connect to the server itself, or set pool_mode = session "
      "for this database");
}

bool is_about_the_session(std::string_view sqlstate) {
  constexpr std::array<std::string_view, 6> ended{"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"};
  for (const auto state : ended) {
    if (sqlstate == state) return true;
  }
  return sqlstate.substr(0, 2) == "08";
}

/// libpqxx 6 forgets the SQLSTATE of what it has a type of its own for.
std::string sqlstate_of(const pqxx::sql_error& error) {
  if (dynamic_cast<const pqxx::undefined_column*>(&error) != nullptr) return "42703";
  if (dynamic_cast<const pqxx::undefined_function*>(&error) != nullptr) return "42883";
  if (dynamic_cast<const pqxx::undefined_table*>(&error) != nullptr) return "42P01";
  if (dynamic_cast<const pqxx::insufficient_privilege*>(&error) != nullptr) return "42501";
  return error.sqlstate();
}

bool names_what_is_missing(std::string_view sqlstate) {
  constexpr std::array<std::string_view, 4> states{"42703", "42P01", "42883", "42704"};
  return std::find(states.begin(), states.end(), sqlstate) != states.end();
}

ExitCode exit_code_of(std::string_view sqlstate) {
  if (sqlstate == "MR001") return ExitCode::configuration;
  if (sqlstate == "MR004") return ExitCode::usage;
  if (sqlstate == "MR005") return ExitCode::declined;
  if (sqlstate == "55P03") return ExitCode::locked;
  if (names_what_is_missing(sqlstate)) return ExitCode::schema;
  return ExitCode::failed;
}

/// The DETAIL of a violated constraint shows the row, and that of a token holds its secret and code.
bool quotes_a_row(std::string_view sqlstate) {
  return sqlstate.substr(0, 2) == "23" || sqlstate == "44000";
}

std::string hint_of(std::string_view sqlstate, std::string_view report) {
  if (sqlstate == "MR001")
    return "the queues are the rows of the table jobs; collect.queue names one of them";
  if (sqlstate == "MR002") {
    return "tokens were truncated or restored; run mailroom rewind-cursor --fix-sequence, which emits those "
           "made "
           "since, and none twice";
  }
  if (sqlstate == "MR005") return "--max-replay raises the limit";
  if (sqlstate == read_only_state) return "the server is a standby or read-only: connect to the primary";
  if (sqlstate == "22003")
    return "an id or a time in the database is too large to be worked with; mailroom doctor says more";
  const auto hint = labelled(report, "HINT");
  if (sqlstate == "42501" && hint.empty())
    return "mailroom doctor says what collect needs; docs/security.md has roles for the other commands";
  return hint.empty() && !quotes_a_row(sqlstate) ? labelled(report, "DETAIL") : hint;
}

}  // namespace

bool is_transient(const DatabaseError& error) {
  constexpr std::array<std::string_view, 4> states{"55P03", "57014", "40P01", "40001"};
  for (const auto state : states) {
    if (error.sqlstate() == state) return true;
  }
  return false;
}

bool takes_no_writes(const DatabaseError& error) {
  return error.sqlstate() == read_only_state;
}

bool tells_of_damage(const DatabaseError& error) {
  return names_what_is_missing(error.sqlstate());
}

Error explained_damage(const DatabaseError& error) {
  if (!tells_of_damage(error)) return error;
  return {ExitCode::schema, std::string("the schema is not as the migrations make it: ") + error.what(),
          "mailroom migrate verify shows what differs, and mailroom doctor what else is wrong"};
}

namespace {

/// What the server says of a statement that it refused.
[[noreturn]] void throw_refused(std::string_view report, const std::string& sqlstate, bool session_is_open) {
  auto message = labelled(report, "ERROR");
  if (message.empty()) message = labelled(report, "FATAL");
  if (message.empty()) message = first_line(report);
  if (!session_is_open || is_about_the_session(sqlstate)) throw_lost({}, message);
  // PostgreSQL quotes a value whole, however long.
  throw DatabaseError(exit_code_of(sqlstate), shown_text(message), shown_text(hint_of(sqlstate, report)),
                      sqlstate, line_of(report));
}

}  // namespace

void rethrow_database_error(bool session_is_open, std::string_view heard) {
  try {
    throw;
  } catch (const pqxx::broken_connection& error) {
    throw_lost(heard, reason_of_loss(error.what()));
  } catch (const pqxx::deadlock_detected& error) {
    // This and the next one are no sql_error in libpqxx 6, and have no SQLSTATE there.
    throw_refused(error.what(), "40P01", session_is_open);
  } catch (const pqxx::serialization_failure& error) {
    throw_refused(error.what(), "40001", session_is_open);
  } catch (const pqxx::sql_error& error) {
    throw_refused(error.what(), sqlstate_of(error), session_is_open);
  } catch (const pqxx::in_doubt_error& error) {
    throw_lost(heard, first_line(error.what()));
  } catch (const pqxx::failure& error) {
    if (session_is_open) throw;
    throw_lost(heard, reason_of_loss(error.what()));
  }
}

}  // namespace mailroom
