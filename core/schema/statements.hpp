// Splits migrations into statements, so that an error can name one and its line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom::schema {

/// One statement of a migration, without the surrounding comments and the final semicolon.
struct Statement {
  std::string text;
  int line = 1;  ///< of its first word in the file
};

/// Splits a file at semicolons, except those in `--` comments and in texts between quotes or dollar quotes.
/// An unterminated statement extends to the end. Knows no other construct with semicolons: the migrations
/// have no block comments, no backslashes in strings, no BEGIN ATOMIC and no rules.
std::vector<Statement> split_statements(std::string_view sql);

/// `statement` on one line, without comments, cut to `width` columns.
std::string shortened_statement(std::string_view statement, std::size_t width);

/// True if `statements` is a single CREATE INDEX or DROP INDEX with CONCURRENTLY, which PostgreSQL runs only
/// outside a transaction.
bool is_concurrent(const std::vector<Statement>& statements);

/// `statement`, for which is_concurrent() is true, without the word CONCURRENTLY.
std::string without_concurrently(const std::string& statement);

/// The name of the index that a statement creates; empty for any other statement.
std::string created_index(const std::string& statement);

}  // namespace mailroom::schema
