#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// One statement of a migration, without the surrounding comments and the final semicolon.
struct Statement {
  std::string text;
  int line = 1;  ///< of its first word in the file
};

/// Splits a file as psql does: semicolons in strings, quoted names, dollar quotes, comments, parentheses and
/// BEGIN ATOMIC … END do not end a statement. An unterminated statement extends to the end.
std::vector<Statement> split_statements(std::string_view sql);

/// The words and symbols of a statement in order: unquoted words in upper case, quoted names without their
/// quotes, strings and numbers unchanged. Omits comments.
std::vector<std::string> statement_text(std::string_view statement);

/// `statement` on one line, without comments, cut to `width` columns.
std::string shortened_statement(std::string_view statement, std::size_t width);

/// True if `statements` is a single CREATE INDEX, DROP INDEX or REINDEX with CONCURRENTLY, which PostgreSQL
/// runs only outside a transaction.
bool is_concurrent(const std::vector<Statement>& statements);

/// `statement` without the word CONCURRENTLY.
std::string without_concurrently(std::string_view statement);

}  // namespace mailroom
