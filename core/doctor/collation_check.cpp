// Do the indexes sort as the operating system does now? An upgrade of it changes the order, and a unique
// index misses rows then.

#include <algorithm>
#include <fmt/format.h>

#include "base/text.hpp"
#include "base/wording.hpp"
#include "doctor/subject.hpp"

namespace mailroom::doctor {
namespace {

/// The indexes of this schema that were built with another version of a collation, and what says that they
/// are built anew. {0}: the default collation, if its version has changed.
constexpr const char* indexes_sql = R"(
WITH indexes AS (
  SELECT x.oid, x.relname, i.indisunique, u.used
  FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid, unnest(i.indcollation) u (used)
  WHERE t.relnamespace = quote_ident($1)::regnamespace),
changed AS (
  SELECT c.oid, format('ALTER COLLATION %I.%I REFRESH VERSION;', n.nspname, c.collname) AS refresh
  FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
  WHERE c.oid IN (SELECT used FROM indexes) AND c.collversion <> pg_collation_actual_version(c.oid)
  {0})
SELECT format('%I', i.relname) AS name, bool_or(i.indisunique) AS is_unique,
  format('REINDEX INDEX CONCURRENTLY %I.%I;', $1::text, i.relname) AS rebuild, min(c.refresh) AS refresh
FROM indexes i JOIN changed c ON c.oid = i.used
GROUP BY i.relname ORDER BY i.relname)";

constexpr const char* of_database = R"(UNION ALL
  SELECT 100, format('ALTER DATABASE %I REFRESH COLLATION VERSION;', d.datname) FROM pg_database d
  WHERE d.datname = current_database() AND d.datcollversion <> pg_database_collation_actual_version(d.oid))";

}  // namespace

void judge_collations(db::Connection& connection, Findings& findings) {
  constexpr int records_default = 150000;
  const bool has_default =
      connection.run("SELECT current_setting('server_version_num')::int").value<int>() >= records_default;
  std::vector<std::string> names;
  std::vector<std::string> statements;
  std::vector<std::string> refreshes;
  bool any_unique = false;
  for (const auto& row :
       qualified_rows(connection, fmt::format(indexes_sql, has_default ? of_database : ""))) {
    names.push_back(row.text("name"));
    statements.push_back(row.text("rebuild"));
    any_unique = any_unique || row.flag("is_unique");
    if (std::ranges::find(refreshes, row.text("refresh")) == refreshes.end())
      refreshes.push_back(row.text("refresh"));
  }
  if (names.empty()) return;
  statements.insert(statements.end(), refreshes.begin(), refreshes.end());
  const auto finding = any_unique ? failure : warning;
  findings.push_back(finding(
      fmt::format("{} built with another version of the operating system's collation: {} may miss rows{}",
                  names.size() == 1 ? "an index was" : "indexes were", joined(names, ", "),
                  any_unique ? ", and take the same text twice" : ""),
      status::fixes(status::FixKind::make_object, statements),
      "one that cannot be rebuilt has rows twice: remove them first. All other indexes of texts in the database need it too"));
}

}  // namespace mailroom::doctor
