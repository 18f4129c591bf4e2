#include "doctor/drift_check.hpp"

#include <fmt/format.h>
#include <sstream>

#include "doctor/creating_statement.hpp"
#include "doctor/subject.hpp"

namespace mailroom {
namespace {

CreatingStatement creation_of(const std::string& kind, std::string_view name) {
  return creating_statement(embedded_migrations(), kind, std::string(name));
}

std::string how_to_restore(const std::string& what, const std::string& migration) {
  return fmt::format("restore {} from a backup; migrations/{}.up.sql has its definition", what, migration);
}

Findings judge_table(const ExpectedTable& table, const SchemaObjects& present) {
  const auto name = std::string(table.name);
  const auto migration = creation_of("TABLE", name).migration;
  const auto found = present.tables.find(name);
  if (found == present.tables.end()) {
    return {failure(fmt::format("the table {} is missing", name), {}, how_to_restore(name, migration))};
  }
  Findings findings;
  std::istringstream columns{std::string(table.columns)};
  for (std::string column; columns >> column;) {
    if (found->second.count(column) > 0) continue;
    findings.push_back(failure(fmt::format("the column {}.{} is missing", name, column), {},
                               how_to_restore(name + "." + column, migration)));
  }
  return findings;
}

/// The statement that builds the index, with CONCURRENTLY where possible so that it does not block writers.
std::string how_to_build(const ExpectedIndex& index) {
  if (!index.constraint.empty()) {
    return fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {};", index.table, index.name, index.constraint);
  }
  const auto alone = creation_of("INDEX CONCURRENTLY IF NOT EXISTS", index.name).text;
  if (!alone.empty()) return alone;
  const std::string plain = "CREATE INDEX ";
  return plain + "CONCURRENTLY " + creation_of("INDEX", index.name).text.substr(plain.size());
}

Findings judge_index(const ExpectedIndex& index, const SchemaObjects& present) {
  // The missing table is reported already.
  if (present.tables.count(std::string(index.table)) == 0) return {};
  const auto found = present.indexes.find(std::string(index.name));
  if (found != present.indexes.end() && found->second.is_valid) return {};
  if (found != present.indexes.end()) {
    return {warning(fmt::format("the index {} is invalid: its creation did not finish", index.name),
                    {fmt::format("REINDEX INDEX CONCURRENTLY {};", index.name)})};
  }
  if (!index.constraint.empty()) {
    return {failure(fmt::format("the constraint {} on {} is missing", index.name, index.table),
                    {how_to_build(index)})};
  }
  return {warning(
      fmt::format("the index {} on {} is missing: queries that need it are slow", index.name, index.table),
      {how_to_build(index)})};
}

Findings judge_function(std::string_view name, const SchemaObjects& present) {
  const auto found = present.functions.find(std::string(name));
  if (found == present.functions.end()) {
    return {failure(fmt::format("the function {} is missing", name), {},
                    fmt::format("run CREATE FUNCTION {} from migrations/{}.up.sql, and pin its search_path",
                                name, creation_of("FUNCTION", name).migration))};
  }
  if (found->second.is_pinned) return {};
  return {failure(fmt::format("the function {} resolves names with its caller's search_path", name),
                  {found->second.pin})};
}

}  // namespace

Findings judge_drift(const SchemaObjects& present) {
  Findings all;
  const auto add = [&](Findings findings) {
    std::move(findings.begin(), findings.end(), std::back_inserter(all));
  };
  for (const auto& table : expected_tables())
    add(judge_table(table, present));
  for (const auto& index : expected_indexes())
    add(judge_index(index, present));
  for (const auto& function : expected_functions())
    add(judge_function(function, present));
  return or_fine(std::move(all), fmt::format("none: {} tables, {} indexes and {} functions exist; "
                                             "mailroom migrate verify compares their definitions",
                                             expected_tables().size(), expected_indexes().size(),
                                             expected_functions().size()));
}

Findings check_drift(Subject& subject) {
  if (subject.schema_newer) return {not_checked("the schema is newer than this mailroom")};
  return judge_drift(read_schema_objects(*subject.connection));
}

}  // namespace mailroom
