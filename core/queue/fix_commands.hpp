#pragma once

#include <optional>
#include <string>

namespace mailroom {

// What an operator types to fix something, whole: for the shell, or SQL that ends with a semicolon.

/// For a sequence of tokens behind a cursor or a token, of whatever queue.
constexpr const char* fix_sequence_command = "mailroom rewind-cursor --fix-sequence";

/// A collector's process, as its application_name `mailroom collect@HOST:PID` tells.
struct CollectorProcess {
  std::string host;
  std::string pid;
};

/// Nothing for a name that is not of this form.
std::optional<CollectorProcess> collector_process(const std::string& application);

std::string sql_literal(const std::string& text);

std::string end_session(int backend_pid);

/// Lets a stopped process go on, by ssh unless its host is `here`.
std::string continue_process(const CollectorProcess& process, const std::string& here);

/// Lists the services of mailroom that are installed, on the host of `last` if that is known.
std::string find_service(const std::optional<CollectorProcess>& last, const std::string& here);

}  // namespace mailroom
