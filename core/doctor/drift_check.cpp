// Do the tables, columns, indexes and functions of the migrations exist, and are they sound?

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/wording.hpp"
#include "db/search_path.hpp"
#include "doctor/subject.hpp"
#include "schema/completeness.hpp"
#include "schema/schema_objects.hpp"

namespace mailroom::doctor {
namespace {

/// Tables, columns, indexes and functions by kind and name; whether each is sound, and what fixes a function.
/// An index is sound if it is valid, a function if it is pinned by the rule of migrations/functions.end.sql.
constexpr const char* objects_sql = R"(
WITH here AS (SELECT quote_ident($1)::regnamespace AS schema),
tables AS (SELECT c.oid, c.relname FROM pg_class c, here WHERE c.relnamespace = schema AND c.relkind IN ('r', 'p'))
SELECT 'table ' || relname AS name, true AS is_sound, '' AS fix
FROM tables
UNION ALL
SELECT format('column %s.%s', relname, attname), true, ''
FROM tables JOIN pg_attribute ON attrelid = oid AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT 'index ' || c.relname, i.indisvalid, ''
FROM here, pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = schema
UNION ALL
SELECT 'trigger ' || t.tgname, true, '' FROM tables JOIN pg_trigger t ON t.tgrelid = tables.oid AND NOT t.tgisinternal
UNION ALL
SELECT 'function ' || p.proname,
  p.prosqlbody IS NOT NULL
    OR format('search_path=%I, pg_temp', $1::text) = ANY (p.proconfig) IS TRUE
    OR (l.lanname = 'sql' AND p.provolatile = 's' AND 't' = ANY (coalesce(p.proargmodes, '{}')) AND p.proconfig IS NULL),
  format('ALTER FUNCTION %s SET search_path = %I, pg_temp;', p.oid::regprocedure, $1::text)
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

PresentObjects read_present_objects(db::Connection& connection) {
  PresentObjects objects;
  for (const auto& row : qualified_rows(connection, objects_sql))
    objects[row.text("name")] = {.is_sound = row.flag("is_sound"), .fix = row.text("fix")};
  return objects;
}

Finding missing(const schema::CatalogueKey& key, const schema::ExpectedObject& object,
                const std::string& home) {
  const auto& name = key.name;
  switch (key.kind) {
    case schema::ObjectKind::index:
      return warning(
          fmt::format("the index {} on {} is missing: queries that need it are slow", name, object.table),
          {{status::FixKind::make_object, db::in_schema(object.statement, home)}});
    case schema::ObjectKind::constraint:
      return failure(fmt::format("the constraint {} on {} is missing", name, object.table),
                     {{status::FixKind::make_object, db::in_schema(object.statement, home)}});
    case schema::ObjectKind::function:
      return failure(fmt::format("the function {} is missing", name), {make_functions()},
                     fmt::format("this makes all functions anew; {} is one of {}", name, object.migration));
    case schema::ObjectKind::trigger:
      return failure(
          fmt::format("the trigger {} is missing", name), {},
          "status and the check of triggers say how to make it; mailroom migrate verify shows its definition");
    default:
      return failure(fmt::format("the {} {} is missing", schema::object_kind_word(key.kind), name), {},
                     fmt::format("restore {} from a backup; migrations/{}.up.sql has its definition", name,
                                 object.migration));
  }
}

Finding unsound(const schema::CatalogueKey& key, const std::string& fix, const std::string& home) {
  if (key.kind == schema::ObjectKind::function)
    return failure(fmt::format("the function {} resolves names with its caller's search_path", key.name),
                   {{status::FixKind::pin_search_path, fix}});
  return warning(fmt::format("the index {} is invalid: its creation did not finish", key.name),
                 {{status::FixKind::make_object,
                   db::in_schema(fmt::format("REINDEX INDEX CONCURRENTLY @.{};", key.name), home)}});
}

/// Empty for a trigger that is not on the list.
std::string table_of_trigger(const std::string& name) {
  for (const auto& trigger : schema::expected_triggers()) {
    if (trigger.name == name) return std::string(trigger.table);
  }
  return {};
}

/// What is beside the definitions: rows that every database has, and one owner.
void judge_completeness(db::Connection& connection, Findings& findings) {
  for (const auto& row : schema::missing_rows(connection))
    findings.push_back(failure(fmt::format("the database lacks {}, which every database has", row),
                               {migrate_fix()}, "somebody has emptied the tables"));
  const auto others = schema::other_owners(connection);
  if (others.objects.empty()) return;
  findings.push_back(failure(
      fmt::format("{} of mailroom, such as the {}, {} not belong to the owner of mailroom_messages, {}",
                  counted(static_cast<std::int64_t>(others.objects.size()), "object"), others.objects.front(),
                  others.objects.size() == 1 ? "does" : "do", others.owner),
      status::fixes(status::FixKind::grant, others.statements)));
}

}  // namespace

Findings check_drift(Subject& subject) {
  if (subject.schema_newer) return {not_checked("the schema is newer than this mailroom")};
  const auto home = db::quoted_schema(*subject.connection);
  const auto present = read_present_objects(*subject.connection);
  std::map<std::string, int> counts;
  Findings findings;
  for (const auto& [key, object] : schema::expected_objects()) {
    const std::string kind =
        key.kind == schema::ObjectKind::constraint ? "index" : schema::object_kind_word(key.kind);
    ++counts[kind];
    // The missing table is reported already.
    const auto table = key.kind == schema::ObjectKind::trigger ? table_of_trigger(key.name) : object.table;
    if (!table.empty() && present.count("table " + table) == 0) continue;
    const auto found = present.find(kind + " " + key.name);
    if (found == present.end()) {
      findings.push_back(missing(key, object, home));
    } else if (!found->second.is_sound) {
      findings.push_back(unsound(key, found->second.fix, home));
    }
  }
  judge_completeness(*subject.connection, findings);
  judge_collations(*subject.connection, findings);
  return or_fine(std::move(findings), fmt::format("none: {} tables, {} indexes and {} functions exist; "
                                                  "mailroom migrate verify compares their definitions",
                                                  counts["table"], counts["index"], counts["function"]));
}

}  // namespace mailroom::doctor
