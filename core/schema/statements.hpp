#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// One statement of a migration, without the comments around it and the semicolon behind it.
struct Statement {
  std::string text;
  int line = 1;  ///< of its first word in the file, from 1
};

/// The statements of a file as psql finds them: strings, quoted names, dollar quotes, comments, parentheses
/// and BEGIN ATOMIC … END keep their semicolons. What is not terminated is one statement up to the end.
std::vector<Statement> split_statements(std::string_view sql);

/// The words and symbols of a statement in their order: unquoted words in capitals, quoted names without
/// their quotes, strings and numbers as they stand. Comments are left out.
std::vector<std::string> statement_words(std::string_view statement);

/// On one line, without comments, at most `width` columns.
std::string shortened_statement(std::string_view statement, std::size_t width);

/// True when `statements` is one CREATE INDEX, DROP INDEX or REINDEX with CONCURRENTLY, which PostgreSQL runs
/// outside a transaction only.
bool is_concurrent(const std::vector<Statement>& statements);

/// `statement` without the word CONCURRENTLY.
std::string without_concurrently(std::string_view statement);

}  // namespace mailroom
