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

/// The text after a label (`ERROR`, `DETAIL`, `HINT`) of PostgreSQL's report; empty if the label is missing.
std::string labelled(std::string_view report, std::string_view label) {
  const std::string marker = std::string(label) + ":  ";
  const auto start = report.find(marker);
  if (start == std::string_view::npos) return {};
  const auto text = report.substr(start + marker.size());
  return std::string(text.substr(0, text.find('\n')));
}

/// The number in `LINE 3: …` if the report is about our statement, not about a query that a function runs;
/// else 0.
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

/// Joins the lines of libpq's report on a connection: one for each address tried, and explanations.
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

/// The reason for a lost session. libpqxx's own messages for it are misleading, so replace them; libpqxx 6
/// reports nothing else.
std::string reason_of_loss(std::string_view report) {
  constexpr std::array<std::string_view, 3> of_libpqxx{"Connection to database failed",
                                                       "Lost connection to the database server",
                                                       "Could not obtain client encoding: not connected."};
  const bool is_its_own = std::any_of(of_libpqxx.begin(), of_libpqxx.end(),
                                      [&](std::string_view own) { return report.starts_with(own); });
  return is_its_own ? "the session has ended" : one_line(report);
}

/// Throws with the reason that the server or a pooler gave for ending the session (FATAL in `heard`), else
/// with `said`.
[[noreturn]] void throw_lost(std::string_view heard, const std::string& said) {
  const auto last_word = labelled(heard, "FATAL");
  // libpq and the server quote the value of a wrong libpq variable, which may contain a password.
  const auto reason = without_passwords(last_word.empty() ? said : last_word);
  if (reason.find("statement pooling mode") == std::string::npos) throw ConnectionLost(reason);
  throw Error(
      ExitCode::configuration, reason,
      "the connection goes through a pooler in statement mode: connect to the server directly, or set "
      "pool_mode = session for this database");
}

bool is_about_the_session(std::string_view sqlstate) {
  constexpr std::array<std::string_view, 6> ended{"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"};
  for (const auto state : ended) {
    if (sqlstate == state) return true;
  }
  return sqlstate.substr(0, 2) == "08";
}

/// libpqxx 6 drops the SQLSTATE of errors for which it has a type.
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

/// True if DETAIL quotes a row, as for a violated constraint; a row of tokens contains secret and code.
bool quotes_a_row(std::string_view sqlstate) {
  return sqlstate.substr(0, 2) == "23" || sqlstate == "44000";
}

std::string hint_of(std::string_view sqlstate, std::string_view report) {
  if (sqlstate == "MR001")
    return "the queues are the rows of the table jobs; collect.queue names one of them";
  if (sqlstate == "MR002") {
    return "tokens were truncated or restored; run mailroom rewind-cursor --fix-sequence, which emits the "
           "tokens created since then and no others";
  }
  if (sqlstate == "MR005") return "raise the limit with --max-replay";
  if (sqlstate == read_only_state) return "the server is a standby or read-only: connect to the primary";
  if (sqlstate == "22003")
    return "an id or a time in the database is out of range; run mailroom doctor for details";
  const auto hint = labelled(report, "HINT");
  if (sqlstate == "42501" && hint.empty())
    return "mailroom doctor shows what collect needs; docs/security.md has roles for the other commands";
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
  return {ExitCode::schema, std::string("the schema differs from the migrations: ") + error.what(),
          "mailroom migrate verify shows what differs; mailroom doctor shows other problems"};
}

namespace {

/// Throws what PostgreSQL's `report` says about a failed statement.
[[noreturn]] void throw_refused(std::string_view report, const std::string& sqlstate, bool session_is_open) {
  auto message = labelled(report, "ERROR");
  if (message.empty()) message = labelled(report, "FATAL");
  if (message.empty()) message = first_line(report);
  if (!session_is_open || is_about_the_session(sqlstate)) throw_lost({}, message);
  // PostgreSQL quotes a value in full, however long, so shorten the text.
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
    // In libpqxx 6 this and the next exception are not derived from sql_error and have no SQLSTATE.
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
