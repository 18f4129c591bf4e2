// The fixes that status and doctor print, safe to paste into a shell or psql.
#pragma once

#include <optional>
#include <string>

namespace mailroom {

// Complete commands that an operator types to fix a problem: for the shell, or SQL that ends with a
// semicolon.

/// For a token sequence that is behind the cursor of any queue, or behind a token.
constexpr const char* fix_sequence_command = "mailroom rewind-cursor --fix-sequence";

/// A collector's process, as its application_name `mailroom collect USER@HOST:PID` or `mailroom send …`
/// names it; until version 9 of the schema it named no user, `mailroom collect@HOST:PID`.
struct CollectorProcess {
  std::string host;
  std::string pid;
};

/// Returns nullopt for a name that is not of this form.
std::optional<CollectorProcess> collector_process(const std::string& application);

std::string sql_literal(const std::string& text);

std::string end_session(int backend_pid);

/// Resumes a stopped process, by ssh unless its host is `here`.
std::string continue_process(const CollectorProcess& process, const std::string& here);

/// A hint: the command that lists the installed services of mailroom, on the host of `last` if that is known.
std::string find_service(const std::optional<CollectorProcess>& last, const std::string& here);

}  // namespace mailroom
