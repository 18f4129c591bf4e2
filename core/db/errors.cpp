// Reads PostgreSQL's reports, leaves out rows that they quote, and adds hints at mailroom's commands.

#include "db/errors.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <pqxx/pqxx>
#include <string_view>

#include "base/pattern.hpp"
#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "db/loss_hint.hpp"

namespace mailroom::db {
namespace {

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
  for (const auto line : split(report, '\n')) {
    if (!text.empty() && !trimmed(line).empty()) text += "; ";
    text += trimmed(line);
  }
  return text;
}

/// The reason for a lost session. libpqxx's own messages for it are misleading, so replace them; libpqxx 6
/// reports nothing else.
std::string reason_of_loss(std::string_view report) {
  for (const auto* own : {"Connection to database failed", "Lost connection to the database server",
                          "Could not obtain client encoding: not connected."}) {
    if (report.starts_with(own)) return "the session has ended";
  }
  return one_line(report);
}

/// Throws with the reason that the server or a pooler gave for ending the session (FATAL in `heard`), else
/// with `said`.
[[noreturn]] void throw_lost(std::string_view heard, const std::string& said) {
  const auto last_word = labelled(heard, "FATAL");
  // libpq and the server quote the value of a wrong libpq variable, which may contain a password.
  const auto reason = without_passwords(last_word.empty() ? said : last_word);
  if (reason.find("statement pooling mode") == std::string::npos)
    throw ConnectionLost(reason, hint_for_loss(reason));
  throw Error(
      ExitCode::configuration, reason,
      "the connection goes through a pooler in statement mode: connect to the server directly, or set "
      "pool_mode = session for this database");
}

bool is_about_the_session(std::string_view state) {
  return state.starts_with("08") || is_one_of(state, {"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"});
}

/// libpqxx 6 drops the SQLSTATE of errors for which it has a type.
std::string sqlstate_of(const pqxx::sql_error& error) {
  auto state = error.sqlstate();
  if (dynamic_cast<const pqxx::undefined_column*>(&error) != nullptr) state = sqlstate::undefined_column;
  if (dynamic_cast<const pqxx::undefined_function*>(&error) != nullptr) state = sqlstate::undefined_function;
  if (dynamic_cast<const pqxx::undefined_table*>(&error) != nullptr) state = sqlstate::undefined_table;
  if (dynamic_cast<const pqxx::insufficient_privilege*>(&error) != nullptr)
    state = sqlstate::insufficient_privilege;
  return state;
}

bool names_what_is_missing(std::string_view state) {
  return is_one_of(state, {sqlstate::undefined_column, sqlstate::undefined_table,
                           sqlstate::undefined_function, sqlstate::undefined_object});
}

/// True if tables were made anew, as by a restore or a migration, since the session prepared its statements.
/// A new session is as good as before.
bool needs_new_session(std::string_view state, std::string_view message) {
  return state == "0A000" &&
         message.find("cached plan must not change result type") != std::string_view::npos;
}

ExitCode exit_code_of(std::string_view state) {
  if (state == sqlstate::unknown_queue || state == sqlstate::not_at_home) return ExitCode::configuration;
  if (state == sqlstate::not_reached) return ExitCode::usage;
  if (state == sqlstate::replays_too_many) return ExitCode::declined;
  if (state == sqlstate::lock_not_available) return ExitCode::locked;
  return names_what_is_missing(state) ? ExitCode::schema : ExitCode::failed;
}

/// True if DETAIL quotes a row, as for a violated constraint; a row of tokens contains secret and code.
bool quotes_a_row(std::string_view state) {
  return state.starts_with("23") || state == "44000";
}

/// True if the id that a sequence gave to a row of mailroom exists.
bool is_repeated_id(std::string_view message) {
  constexpr std::string_view beginning = "duplicate key value violates unique constraint \"";
  if (!message.starts_with(beginning)) return false;
  return is_one_of(message.substr(beginning.size()),
                   {"accounts_pkey\"", "tokens_pkey\"", "mailroom_batches_pkey\"", "mailroom_gaps_pkey\"",
                    "mailroom_operations_pkey\""});
}

bool is_about_encoding(std::string_view state) {
  return is_one_of(state, {sqlstate::untranslatable, sqlstate::invalid_text});
}

/// `message`; if it says which bytes of UTF-8 the encoding of the database lacks, with the character instead:
/// `character with byte sequence 0xe2 0x80 0xa6 in encoding "UTF8" has no equivalent in encoding "LATIN1"`.
std::string with_character(const std::string& message) {
  static const Pattern untranslated(
      "character with byte sequence ((?:0x[0-9a-f]{2} ?)+) in encoding \"UTF8\" has no equivalent in encoding "
      "\"([A-Za-z0-9_]+)\"");
  const auto match = untranslated.whole(message);
  if (!match) return message;
  std::string character;
  for (const auto byte : split((*match)[1], ' ')) {
    if (byte.empty()) continue;
    unsigned value = 0;
    std::from_chars(byte.data() + 2, byte.data() + byte.size(), value, 16);
    character += static_cast<char>(value);
  }
  return "the database, whose encoding is " + (*match)[2] + ", has no character '" + character + "'";
}

std::string hint_of(std::string_view state, std::string_view report) {
  if (state == sqlstate::unknown_queue)
    return "mailroom queue list shows the queues; collect.queue names those to collect from";
  // The functions add a hint if it is another sequence than that of the tokens.
  if (state == sqlstate::sequence_behind && labelled(report, "HINT").empty()) {
    return "tokens were truncated or restored; run mailroom rewind-cursor --fix-sequence, which emits the "
           "tokens created since then and no others";
  }
  if (state == sqlstate::replays_too_many) return "raise the limit with --max-replay";
  if (state == sqlstate::read_only) return "the server is a standby or read-only: connect to the primary";
  if (state == sqlstate::out_of_range)
    return "an id or a time in the database is out of range; run mailroom doctor for details";
  if (is_repeated_id(labelled(report, "ERROR"))) {
    return "its sequence is behind the table, as after a restore or a switch-over to a logical replica; run mailroom "
           "rewind-cursor --fix-sequence";
  }
  if (labelled(report, "ERROR").starts_with("too many notifications in the NOTIFY queue"))
    return "a session that listens keeps a transaction open; mailroom doctor names it";
  const auto hint = labelled(report, "HINT");
  const bool is_forbidden = state == sqlstate::insufficient_privilege && hint.empty();
  if (is_forbidden && labelled(report, "ERROR").find("pg_stat_activity") != std::string::npos) {
    return "PostgreSQL lets every role read it, so this right was revoked; mailroom doctor shows the GRANT "
           "that restores it";
  }
  if (is_forbidden) {
    return "the owner of the tables may do this, and docs/security.md has a role for each command; mailroom doctor "
           "shows what collect needs";
  }
  if (is_about_encoding(state)) {
    return "write it without this character; an account can also be named by its id";
  }
  return hint.empty() && !quotes_a_row(state) ? labelled(report, "DETAIL") : hint;
}

/// Throws what PostgreSQL's `report` says about a failed statement.
[[noreturn]] void throw_refused(std::string_view report, std::string_view state, bool session_is_open) {
  auto message = labelled(report, "ERROR");
  if (message.empty()) message = labelled(report, "FATAL");
  if (message.empty()) message = first_line(report);
  if (state == sqlstate::untranslatable) message = with_character(message);
  if (!session_is_open || is_about_the_session(state) || needs_new_session(state, message))
    throw_lost({}, message);
  // PostgreSQL quotes a value in full, however long, so shorten the text.
  throw DatabaseError(exit_code_of(state), shown_text(message), shown_text(hint_of(state, report)),
                      std::string(state), line_of(report));
}

}  // namespace

std::string_view settled_sqlstate(std::string_view state, std::string_view message, std::string_view source) {
  if (state != sqlstate::insufficient_privilege) return state;
  // Who keeps files; who checks rights is aclchk.c, execMain.c, pl_exec.c and others.
  const bool keeps_files = is_one_of(
      source, {"md.c", "fd.c", "smgr.c", "slru.c", "buffile.c", "fileset.c", "sharedfileset.c", "copydir.c",
               "reinit.c", "xlog.c", "xlogutils.c", "relmapper.c", "twophase.c", "timeline.c", "bufmgr.c"});
  const bool names_file =
      message.starts_with("could not ") && (message.find(" file \"") != std::string_view::npos ||
                                            message.find(" directory \"") != std::string_view::npos);
  return keeps_files || names_file ? sqlstate::io_error : state;
}

bool is_transient(const DatabaseError& error) {
  return is_one_of(error.sqlstate(), {sqlstate::lock_not_available, sqlstate::query_cancelled,
                                      sqlstate::deadlock, sqlstate::serialization_failure});
}

Retry retry_for(const Error& error) {
  const auto* refusal = dynamic_cast<const DatabaseError*>(&error);
  if (refusal == nullptr) return error.code() == ExitCode::database ? Retry::new_session : Retry::none;
  if (refusal->sqlstate() == sqlstate::read_only || is_pid_locked(error)) return Retry::new_session;
  // Once there is room, the server takes the receipt of what was mailed, and nothing is mailed twice.
  constexpr std::string_view disk_full = "53100";
  const bool may_pass = is_transient(*refusal) || refusal->sqlstate() == disk_full;
  return may_pass ? Retry::same_session : Retry::none;
}

bool is_pid_locked(const Error& error) {
  const auto* refusal = dynamic_cast<const DatabaseError*>(&error);
  return refusal != nullptr && refusal->sqlstate() == sqlstate::pid_locked;
}

std::string reason_of(const Error& error) {
  return error.hint().empty() ? error.what() : error.what() + ("; " + error.hint());
}

bool tells_of_damage(const DatabaseError& error) {
  return names_what_is_missing(error.sqlstate());
}

Error explained_damage(const DatabaseError& error) {
  if (!tells_of_damage(error)) return error;
  return {ExitCode::schema, std::string("the schema differs from the migrations: ") + error.what(),
          "mailroom migrate verify shows what differs; mailroom doctor shows other problems"};
}

void rethrow_database_error(bool session_is_open, std::string_view heard) {
  try {
    throw;
  } catch (const pqxx::broken_connection& error) {
    throw_lost(heard, reason_of_loss(error.what()));
  } catch (const pqxx::deadlock_detected& error) {
    // In libpqxx 6 this and the next exception are not derived from sql_error and have no SQLSTATE.
    throw_refused(error.what(), sqlstate::deadlock, session_is_open);
  } catch (const pqxx::serialization_failure& error) {
    throw_refused(error.what(), sqlstate::serialization_failure, session_is_open);
  } catch (const pqxx::sql_error& error) {
    throw_refused(error.what(), settled_sqlstate(sqlstate_of(error), labelled(error.what(), "ERROR")),
                  session_is_open);
  } catch (const pqxx::in_doubt_error& error) {
    throw_lost(heard, first_line(error.what()));
  } catch (const pqxx::failure& error) {
    if (session_is_open) throw;
    throw_lost(heard, reason_of_loss(error.what()));
  }
}

}  // namespace mailroom::db
