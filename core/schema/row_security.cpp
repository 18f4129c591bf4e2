// Takes the names of the tables from the migrations, and asks row_security_active() of each.

#include "schema/row_security.hpp"

#include <string_view>

#include "db/array_text.hpp"
#include "schema/migration.hpp"

namespace mailroom {
namespace {

/// The names after CREATE TABLE at the beginning of a line. A regular expression would take longer than the
/// rest of a short command.
void add_created_tables(std::string_view sql, std::vector<std::string>& tables) {
  constexpr std::string_view words = "CREATE TABLE ";
  for (auto at = sql.find(words); at != std::string_view::npos; at = sql.find(words, at + words.size())) {
    const auto rest = sql.substr(at + words.size());
    const auto name = rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
    if ((at == 0 || sql[at - 1] == '\n') && !name.empty()) tables.emplace_back(name);
  }
}

std::vector<std::string> created_tables() {
  std::vector<std::string> tables{"schema_migrations", "mailroom_schema_history"};
  for (const auto& migration : embedded_migrations())
    add_created_tables(migration.up, tables);
  return tables;
}

}  // namespace

const std::vector<std::string>& mailroom_tables() {
  static const auto tables = created_tables();
  return tables;
}

const std::vector<std::string>& tables_of_claims() {
  static const std::vector<std::string> tables{
      "accounts",         "tokens",           "jobs",          "mailroom_queues",
      "mailroom_budgets", "mailroom_batches", "mailroom_gaps", "mailroom_deliveries"};
  return tables;
}

const std::vector<std::string>& tables_of_consumers() {
  static const auto tables = [] {
    auto all = tables_of_claims();
    all.emplace_back("mailroom_sinks");
    return all;
  }();
  return tables;
}

HiddenRows hidden_rows(Connection& connection, const std::vector<std::string>& tables) {
  // A policy does not help: collectors set row_security to off, and then each policy is an error.
  const auto row = connection.run(R"(
SELECT coalesce(string_agg(c.relname, ', ' ORDER BY c.relname), ''),
  format('ALTER ROLE %I BYPASSRLS;', current_user),
  CASE WHEN count(*) < 3 THEN
    coalesce(string_agg(format('ALTER TABLE %I.%I DISABLE ROW LEVEL SECURITY;', current_schema(), c.relname), ' '
                        ORDER BY c.relname), '')
  ELSE '' END
FROM pg_class c
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind IN ('r', 'p')
  AND c.relname = ANY ($1::text[]) AND row_security_active(c.oid))",
                                  array_text(tables))[0];
  return {.tables = row[0].c_str(), .fix = row[1].c_str(), .owners_fix = row[2].c_str()};
}

void require_all_rows(Connection& connection, const std::vector<std::string>& tables) {
  const auto hidden = hidden_rows(connection, tables);
  if (hidden.tables.empty()) return;
  auto hint = "a policy does not help; as a superuser: " + hidden.fix;
  if (!hidden.owners_fix.empty()) hint += " or as the owner of the tables: " + hidden.owners_fix;
  throw Error(ExitCode::failed,
              fmt::format("row security hides rows of {}, so results would be incomplete", hidden.tables),
              hint);
}

}  // namespace mailroom
