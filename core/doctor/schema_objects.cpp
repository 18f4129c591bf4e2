#include "doctor/schema_objects.hpp"

#include <array>
#include <fmt/format.h>
#include <regex>
#include <sstream>

#include "schema/statements.hpp"

namespace mailroom {
namespace {

constexpr std::array<ExpectedTrigger, 8> triggers{{
    {"before_token_insert", "tokens", true, "the cursor can move past a token that is committed late"},
    {"after_token_inserted", "tokens", false, "collectors see a new token only at their next poll"},
    {"after_account_insert", "accounts", true, "a new account gets no activation token"},
    {"before_account_insert", "accounts", false,
     "an address with a control character is accepted, and its tokens are skipped"},
    {"before_account_address_change", "accounts", false,
     "an address with a control character is accepted, and its tokens are skipped"},
    {"before_account_status_change", "accounts", true,
     "status changes get no timestamp, and ending a suspension can activate an account"},
    {"after_token_consumed", "tokens", true, "consuming an activation token does not activate the account"},
    {"after_account_suspension", "accounts", false, "suspensions are not recorded"},
}};

/// What `text` has in its parentheses, separated by the commas that are in no further ones.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  int depth = 0;
  for (const char c : text) {
    if (c == ')') --depth;
    if (c == ',' && depth == 1) {
      parts.emplace_back();
    } else if (depth > 0) {
      parts.back() += c;
    }
    if (c == '(' && ++depth == 1) parts.emplace_back();
  }
  return parts;
}

/// Adds the table that `text` creates, and the indexes of the constraints of its columns.
void add_table(const std::string& text, const std::string& name, const Migration& migration,
               ExpectedObjects& objects) {
  ExpectedTable table{.name = name, .migration = migration.title(), .columns = {}};
  const auto add_constraint = [&](const std::string& index, const std::string& rule) {
    objects.indexes.push_back(
        {.name = index,
         .table = name,
         .is_constraint = true,
         .statement = fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {};", name, index, rule)});
  };
  for (const auto& part : parts_of(text)) {
    std::string column;
    std::istringstream(part) >> column;
    // A constraint of the whole table begins with a keyword, which the migrations write in upper case.
    if (column.empty() || std::isupper(static_cast<unsigned char>(column.front())) != 0) continue;
    table.columns.push_back(column);
    if (part.find(" PRIMARY KEY") != std::string::npos)
      add_constraint(name + "_pkey", fmt::format("PRIMARY KEY ({})", column));
    if (part.find(" UNIQUE") != std::string::npos)
      add_constraint(fmt::format("{}_{}_key", name, column), fmt::format("UNIQUE ({})", column));
  }
  objects.tables.push_back(std::move(table));
}

/// `text` is a statement on one line.
void add_created(const std::string& text, const Migration& migration, ExpectedObjects& objects) {
  static const std::regex form(
      "CREATE (?:OR REPLACE )?(TABLE|INDEX|FUNCTION|TRIGGER) (CONCURRENTLY IF NOT EXISTS )?([a-z_0-9]+)"
      "(?: ON ([a-z_]+))?[ (]");
  std::smatch match;
  if (!std::regex_search(text, match, form, std::regex_constants::match_continuous)) return;
  const auto kind = match[1].str();
  const auto name = match[3].str();
  if (kind == "TABLE") add_table(text, name, migration, objects);
  if (kind == "FUNCTION") objects.functions[name] = migration.title();
  if (kind == "TRIGGER") objects.triggers[name] = text + ";";
  if (kind != "INDEX") return;
  const auto plain = std::string_view("CREATE INDEX ").size();
  const auto statement = match[2].matched ? text : "CREATE INDEX CONCURRENTLY " + text.substr(plain);
  objects.indexes.push_back({.name = name, .table = match[4], .statement = statement + ";"});
}

}  // namespace

ExpectedObjects read_expected_objects(const std::vector<Migration>& migrations) {
  ExpectedObjects objects;
  for (const auto& migration : migrations) {
    for (const auto& statement : split_statements(migration.up))
      add_created(shortened_statement(statement.text, std::string::npos), migration, objects);
  }
  return objects;
}

const ExpectedObjects& expected_objects() {
  static const auto objects = read_expected_objects(embedded_migrations());
  return objects;
}

std::span<const ExpectedTrigger> expected_triggers() {
  return triggers;
}

}  // namespace mailroom
