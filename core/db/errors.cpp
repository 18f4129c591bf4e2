#include "db/errors.hpp"

#include <array>
#include <pqxx/pqxx>
#include <string_view>

namespace mailroom {
namespace {

/// What PostgreSQL's report says under one of its labels, `ERROR`, `DETAIL` or `HINT`; empty if it is not
/// there.
std::string labelled(std::string_view report, std::string_view label) {
  const std::string marker = std::string(label) + ":  ";
  const auto start = report.find(marker);
  if (start == std::string_view::npos) return {};
  const auto text = report.substr(start + marker.size());
  return std::string(text.substr(0, text.find('\n')));
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

/// libpq's report on a connection: a line for each address tried, the reason in each. One line is enough.
std::string one_line(std::string_view report) {
  std::string text;
  for (const char c : report) {
    if (c != '\n' && c != '\t')
      text += c;
    else if (!text.empty() && text.back() != ' ')
      text += ' ';
  }
  while (!text.empty() && text.back() == ' ')
    text.pop_back();
  return text;
}

bool is_about_the_session(std::string_view sqlstate) {
  constexpr std::array<std::string_view, 4> ended{"57P01", "57P02", "57P03", "57P05"};
  for (const auto state : ended) {
    if (sqlstate == state) return true;
  }
  return sqlstate.empty() || sqlstate.substr(0, 2) == "08";
}

ExitCode exit_code_of(std::string_view sqlstate) {
  if (sqlstate == "MR001") return ExitCode::configuration;
  if (sqlstate == "55P03") return ExitCode::locked;
  return ExitCode::failed;
}

std::string hint_of(std::string_view sqlstate, std::string_view report) {
  if (sqlstate == "MR001")
    return "the queues are the rows of the table jobs; collect.queue names one of them";
  if (sqlstate == "MR002") {
    return "the tokens were truncated or restored: mailroom rewind-cursor --to-end moves the cursor to where "
           "they are";
  }
  if (sqlstate == "25006") return "the server is a standby or read-only: connect to the primary";
  const auto hint = labelled(report, "HINT");
  return hint.empty() ? labelled(report, "DETAIL") : hint;
}

}  // namespace

void rethrow_database_error(bool session_is_open) {
  try {
    throw;
  } catch (const pqxx::broken_connection& error) {
    throw ConnectionLost(one_line(error.what()));
  } catch (const pqxx::sql_error& error) {
    const std::string_view report = error.what();
    auto message = labelled(report, "ERROR");
    if (message.empty()) message = labelled(report, "FATAL");
    if (message.empty()) message = first_line(report);
    if (is_about_the_session(error.sqlstate())) throw ConnectionLost(message);
    throw DatabaseError(exit_code_of(error.sqlstate()), message, hint_of(error.sqlstate(), report),
                        error.sqlstate());
  } catch (const pqxx::in_doubt_error& error) {
    throw ConnectionLost(first_line(error.what()));
  } catch (const pqxx::failure& error) {
    if (session_is_open) throw;
    throw ConnectionLost(first_line(error.what()));
  }
}

}  // namespace mailroom
