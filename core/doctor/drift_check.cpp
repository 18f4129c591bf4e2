#include <fmt/format.h>

#include "doctor/schema_objects.hpp"
#include "doctor/subject.hpp"

namespace mailroom {
namespace {

/// Tables, columns, indexes and functions by kind and name; whether each is sound, and what fixes a function.
/// An index is sound if it is valid, a function if it is independent of the caller's search_path. A stable
/// set-returning SQL function is exempt: queries inline it, so its names resolve as theirs.
constexpr const char* objects_sql = R"(
WITH here AS (SELECT quote_ident(current_schema())::regnamespace AS schema),
tables AS (SELECT c.oid, c.relname FROM pg_class c, here WHERE c.relnamespace = schema AND c.relkind IN ('r', 'p'))
SELECT 'table ' || relname, true, ''
FROM tables
UNION ALL
SELECT format('column %s.%s', relname, attname), true, ''
FROM tables JOIN pg_attribute ON attrelid = oid AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'index ' || c.relname, i.indisvalid, ''
FROM here, pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = schema
UNION ALL
SELECT 'function ' || p.proname,
  p.prosqlbody IS NOT NULL
    OR format('search_path=%I, pg_temp', current_schema()) = ANY (p.proconfig) IS TRUE
    OR (l.lanname = 'sql' AND p.proretset AND p.provolatile = 's' AND p.proconfig IS NULL),
  format('ALTER FUNCTION %s SET search_path = %I, pg_temp;', p.oid::regprocedure, current_schema())
FROM here, pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = schema
  AND NOT EXISTS (
    SELECT FROM pg_depend d
    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'))";

struct PresentObject {
  bool is_sound = true;
  std::string fix;
};

using PresentObjects = std::map<std::string, PresentObject>;

PresentObjects read_present_objects(Connection& connection) {
  PresentObjects objects;
  for (const auto& row : connection.run(objects_sql))
    objects[row[0].c_str()] = {.is_sound = row[1].as<bool>(), .fix = row[2].c_str()};
  return objects;
}

void judge_table(const ExpectedTable& table, const PresentObjects& present, Findings& findings) {
  const auto report = [&](const std::string& kind, const std::string& name) {
    findings.push_back(
        failure(fmt::format("the {} {} is missing", kind, name), {},
                fmt::format("restore {} from a backup; migrations/{}.up.sql has its definition", name,
                            table.migration)));
  };
  if (present.count("table " + table.name) == 0) return report("table", table.name);
  for (const auto& column : table.columns) {
    const auto name = table.name + "." + column;
    if (present.count("column " + name) == 0) report("column", name);
  }
}

void judge_index(const ExpectedIndex& index, const PresentObjects& present, Findings& findings) {
  // The missing table is reported already.
  if (present.count("table " + index.table) == 0) return;
  const auto found = present.find("index " + index.name);
  if (found != present.end()) {
    if (found->second.is_sound) return;
    findings.push_back(
        warning(fmt::format("the index {} is invalid: its creation did not finish", index.name),
                {fmt::format("REINDEX INDEX CONCURRENTLY {};", index.name)}));
  } else if (index.is_constraint) {
    findings.push_back(failure(fmt::format("the constraint {} on {} is missing", index.name, index.table),
                               {index.statement}));
  } else {
    findings.push_back(warning(
        fmt::format("the index {} on {} is missing: queries that need it are slow", index.name, index.table),
        {index.statement}));
  }
}

void judge_function(const std::string& name, const std::string& migration, const PresentObjects& present,
                    Findings& findings) {
  const auto found = present.find("function " + name);
  if (found == present.end()) {
    findings.push_back(
        failure(fmt::format("the function {} is missing", name), {},
                fmt::format("run CREATE FUNCTION {} from migrations/{}.up.sql, and pin its search_path", name,
                            migration)));
  } else if (!found->second.is_sound) {
    findings.push_back(
        failure(fmt::format("the function {} resolves names with its caller's search_path", name),
                {found->second.fix}));
  }
}

}  // namespace

Findings check_drift(Subject& subject) {
  if (subject.schema_newer) return {not_checked("the schema is newer than this mailroom")};
  const auto& expected = expected_objects();
  const auto present = read_present_objects(*subject.connection);
  Findings findings;
  for (const auto& table : expected.tables)
    judge_table(table, present, findings);
  for (const auto& index : expected.indexes)
    judge_index(index, present, findings);
  for (const auto& [name, migration] : expected.functions)
    judge_function(name, migration, present, findings);
  return or_fine(std::move(findings),
                 fmt::format("none: {} tables, {} indexes and {} functions exist; "
                             "mailroom migrate verify compares their definitions",
                             expected.tables.size(), expected.indexes.size(), expected.functions.size()));
}

}  // namespace mailroom
