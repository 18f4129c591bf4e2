#include "schema/statements.hpp"

#include <algorithm>
#include <filesystem>

#include "schema/function_set.hpp"
#include "schema/migration.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/subprocess.hpp"

namespace mailroom::test::statements_test {
namespace {

using Texts = std::vector<std::string>;

Texts texts_of(std::string_view sql) {
  Texts texts;
  for (const auto& statement : schema::split_statements(sql))
    texts.push_back(std::to_string(statement.line) + ": " + statement.text);
  return texts;
}

}  // namespace

TEST_CASE("statements end at semicolons, and have line numbers") {
  CHECK(texts_of("").empty());
  CHECK(texts_of(" \n-- nothing; here\n ;;\n").empty());
  CHECK(texts_of("-- head\n\nSELECT 1;\nSELECT\n  2 ;SELECT 3") ==
        Texts{"3: SELECT 1", "4: SELECT\n  2", "5: SELECT 3"});
}

TEST_CASE("a semicolon inside another construct ends no statement") {
  for (const std::string one : {"SELECT ';', 'it''s;'", "SELECT \"a;\"\"b;\"", "SELECT $$;$$, $a$;$$;$a$",
                                "SELECT 1 -- ;\n + 1", "SELECT $1, 2", "SELECT 'ü;'"}) {
    CAPTURE(one);
    CHECK(texts_of(one + "; SELECT 9") ==
          Texts{"1: " + one, std::to_string(1 + std::count(one.begin(), one.end(), '\n')) + ": SELECT 9"});
  }
}

TEST_CASE("unterminated text extends to the end") {
  for (const std::string text : {"SELECT 'a; b", "SELECT $x$ a; b", "SELECT \"a; b"})
    CHECK(texts_of(text) == Texts{"1: " + text});
  CHECK(texts_of("SELECT 1 -- a; b") == Texts{"1: SELECT 1"});
}

TEST_CASE("a statement is shortened to one line") {
  CHECK(schema::shortened_statement("CREATE TABLE t ( -- a table\n    id  bigint\n)", 60) ==
        "CREATE TABLE t ( id bigint )");
  CHECK(schema::shortened_statement("SELECT 'much more than fits'", 12) == "SELECT 'muc…");
}

TEST_CASE("a single statement with CONCURRENTLY is recognised") {
  const auto alone = [](std::string_view sql) {
    return schema::is_concurrent(schema::split_statements(sql));
  };
  CHECK(alone("-- why\nCREATE INDEX CONCURRENTLY IF NOT EXISTS i ON t (a);\n"));
  CHECK(alone("create unique index concurrently i on t (a)"));
  CHECK(alone("DROP INDEX CONCURRENTLY IF EXISTS i"));
  CHECK_FALSE(alone("CREATE INDEX i ON t (a)"));
  CHECK_FALSE(alone("CREATE INDEX CONCURRENTLY i ON t (a); SELECT 1"));
  CHECK_FALSE(alone("CREATE INDEX i ON t (a) WHERE b = 'CONCURRENTLY'"));
  CHECK_FALSE(alone(""));
  CHECK(schema::without_concurrently("CREATE INDEX Concurrently i ON t (a)") == "CREATE INDEX  i ON t (a)");
  CHECK(schema::created_index("CREATE INDEX CONCURRENTLY IF NOT EXISTS one ON t (a)") == "one");
  CHECK(schema::created_index("create unique index\n  concurrently One on t (a)") == "One");
  CHECK(schema::created_index("DROP INDEX CONCURRENTLY one").empty());
}

TEST_CASE("every embedded migration splits into statements that begin with a command") {
  for (const auto& migration : schema::embedded_migrations()) {
    for (const auto& text : {migration.up, migration.down}) {
      for (const std::string unknown : {"/*", " E'", "(E'", "BEGIN ATOMIC", " RULE "})
        CHECK(text.find(unknown) == std::string::npos);
      const auto statements = schema::split_statements(text);
      CHECK_FALSE(statements.empty());
      for (const auto& statement : statements) {
        CAPTURE(migration.name, statement.line, statement.text);
        const auto first = statement.text.substr(0, statement.text.find(' '));
        CHECK_THAT((Texts{"CREATE", "ALTER", "DROP", "LOCK", "INSERT", "UPDATE", "COMMENT", "REVOKE", "GRANT",
                          "DO", "WITH", "DELETE"}),
                   Catch::Matchers::VectorContains(first));
        // A file with a single such statement can be run again only with IF [NOT] EXISTS.
        if (schema::is_concurrent(statements)) CHECK(statement.text.find("EXISTS") != std::string::npos);
      }
    }
  }
}

TEST_CASE("every server can hold the text of the migrations and of the statements in core") {
  const auto is_ascii = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  };
  for (const auto& migration : schema::embedded_migrations()) {
    INFO(migration.title());
    CHECK(is_ascii(migration.up));
    CHECK(is_ascii(migration.down));
  }
  // Comments too: those within a body are part of its text.
  for (const auto& file : schema::embedded_function_files().files) {
    INFO(file.name);
    CHECK(is_ascii(file.text));
  }
  CHECK(is_ascii(schema::embedded_functions().migration.up));
  CHECK(is_ascii(schema::embedded_functions().migration.down));
  // Statements of more than a line are raw strings.
  const std::string beginning = "R\"(";
  int checked = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_directory + "/core")) {
    if (entry.path().extension() != ".cpp") continue;
    const auto text = read_file(entry.path().string());
    for (auto at = text.find(beginning); at != std::string::npos; at = text.find(beginning, at + 1)) {
      const auto statement = text.substr(at, text.find(")\"", at) - at);
      INFO(entry.path() << ": " << statement);
      CHECK(is_ascii(statement));
      ++checked;
    }
  }
  CHECK(checked > 100);
}

}  // namespace mailroom::test::statements_test
