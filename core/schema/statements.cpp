// A scanner for comments, quotes and dollar quotes, just enough for the migrations.

#include "schema/statements.hpp"

#include <algorithm>
#include <cctype>

#include "base/pattern.hpp"
#include "base/terminal_text.hpp"
#include "base/text.hpp"

namespace mailroom::schema {
namespace {

constexpr auto none = std::string_view::npos;

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

/// Up to and including `end` after `from`; all of `sql` without it.
std::string_view through(std::string_view sql, std::string_view end, std::size_t from) {
  const auto at = sql.find(end, from);
  return at == none ? sql : sql.substr(0, at + end.size());
}

/// The first part of `sql`, which is not empty: a comment, a text in quotes or dollar quotes, or a character.
/// A doubled quote in a text begins another part, which makes no difference.
std::string_view first_part(std::string_view sql) {
  const char c = sql.front();
  if (sql.starts_with("--")) return sql.substr(0, sql.find('\n'));
  if (c == '\'' || c == '"') return through(sql, sql.substr(0, 1), 1);
  if (c == '$') {
    const auto* const tag_end = std::find_if_not(sql.begin() + 1, sql.end(), [](unsigned char byte) {
      return std::isalnum(byte) != 0 || byte == '_';
    });
    const auto tag = sql.substr(0, static_cast<std::size_t>(tag_end - sql.begin()) + 1);
    if (tag.size() > 1 && tag.back() == '$') return through(sql, tag, tag.size());
  }
  return sql.substr(0, 1);
}

bool is_gap(std::string_view part) {
  return is_space(part.front()) || part.starts_with("--");
}

}  // namespace

std::vector<Statement> split_statements(std::string_view sql) {
  std::vector<Statement> statements;
  LineCounter lines(sql);
  std::size_t first = none;
  std::size_t last = 0;
  const auto finish = [&] {
    if (first != none)
      statements.push_back({.text = std::string(sql.substr(first, last - first)),
                            .line = static_cast<int>(lines.line_of(first))});
    first = none;
  };
  for (std::size_t at = 0; at < sql.size();) {
    const auto part = first_part(sql.substr(at));
    if (part == ";") {
      finish();
    } else if (!is_gap(part)) {
      first = std::min(first, at);
      last = at + part.size();
    }
    at += part.size();
  }
  finish();
  return statements;
}

std::string shortened_statement(std::string_view statement, std::size_t width) {
  std::string text;
  for (auto rest = statement; !rest.empty();) {
    const auto part = first_part(rest);
    rest.remove_prefix(part.size());
    for (const char c : is_gap(part) ? " " : part) {
      const bool repeats_space = is_space(c) && (text.empty() || text.back() == ' ');
      if (!repeats_space) text += is_space(c) ? ' ' : c;
    }
  }
  return fit(text, width);
}

bool is_concurrent(const std::vector<Statement>& statements) {
  static const Pattern form(R"((CREATE|CREATE\s+UNIQUE|DROP)\s+INDEX\s+CONCURRENTLY\s)", LetterCase::ignored);
  return statements.size() == 1 && form.at_start(statements.front().text).has_value();
}

std::string without_concurrently(const std::string& statement) {
  static const Pattern word("CONCURRENTLY", LetterCase::ignored);
  return word.replaced_first(statement, "");
}

std::string created_index(const std::string& statement) {
  static const Pattern form(R"(CREATE\s[^(]*\s(\w+)\s+ON\s)", LetterCase::ignored);
  const auto match = form.at_start(statement);
  return match ? (*match)[1] : std::string();
}

}  // namespace mailroom::schema
