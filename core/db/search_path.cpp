// Splits options as the server does, and compares them with the session's setting.

#include "db/search_path.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "db/conninfo.hpp"

namespace mailroom::db {
namespace {

/// Splits as the server does: at white space, which a backslash makes part of a word.
std::vector<std::string> words_of(const std::string& options) {
  std::vector<std::string> words;
  bool is_within = false;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const bool is_blank = std::string_view(" \t\n\r\v\f").find(options[i]) != std::string_view::npos;
    if (!is_blank && !is_within) words.emplace_back();
    is_within = !is_blank;
    if (is_blank) continue;
    if (options[i] == '\\' && i + 1 < options.size()) ++i;
    words.back() += options[i];
  }
  return words;
}

/// The assignments `name=value` of `-cname=value`, `-c name=value` and `--name=value`.
std::vector<std::string> assignments_in(const std::string& options) {
  const auto words = words_of(options);
  std::vector<std::string> assignments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-c" && i + 1 < words.size()) {
      assignments.push_back(words[++i]);
    } else if (words[i].starts_with("-c") || words[i].starts_with("--")) {
      assignments.push_back(words[i].substr(2));
    }
  }
  return assignments;
}

}  // namespace

std::optional<std::string> search_path_in(const std::string& options) {
  std::optional<std::string> path;
  for (const auto& assignment : assignments_in(options)) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos) continue;
    auto name = lower_case(assignment.substr(0, equals));
    std::replace(name.begin(), name.end(), '-', '_');
    if (name == "search_path") path = assignment.substr(equals + 1);
  }
  return path;
}

void require_search_path(Connection& connection, const std::string& conninfo) {
  const auto asked = search_path_in(session_options(conninfo));
  if (!asked) return;
  // A path that this session has set itself is the one that counts.
  const auto rows = connection.run(
      "SELECT setting FROM pg_settings WHERE name = 'search_path' AND setting <> $1 AND source <> 'session'",
      *asked);
  if (rows.empty()) return;
  throw Error(
      ExitCode::configuration,
      fmt::format("the search_path of the connection's options, {}, did not arrive: the session has {}",
                  shown_text(*asked), shown_text(rows.text())),
      "a pooler drops options (PgBouncer: ignore_startup_parameters): set database.schema, as with "
      "mailroom --schema NAME, or connect to the server directly");
}

std::string quoted_schema(Connection& connection) {
  return connection.run("SELECT quote_ident(current_schema())").text();
}

std::string qualified_name(Connection& connection, const std::string& name) {
  return in_schema("@." + name, quoted_schema(connection));
}

std::string in_schema(std::string statement, const std::string& schema) {
  const std::string mark = "@.";
  for (auto at = statement.find(mark); at != std::string::npos;
       at = statement.find(mark, at + schema.size() + 1))
    statement.replace(at, 1, schema);
  return statement;
}

}  // namespace mailroom::db
