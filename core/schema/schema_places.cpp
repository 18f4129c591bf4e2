// Recognises the tables of any version in pg_class, and says which setting or GRANT helps.

#include "schema/schema_places.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"

namespace mailroom::schema {
namespace {

/// A condition on pg_namespace n: it holds mailroom_batches, or the tables of versions below 4.
const std::string is_place_sql = R"((
  EXISTS (SELECT FROM pg_class c
          WHERE c.relnamespace = n.oid AND c.relname = 'mailroom_batches' AND c.relkind IN ('r', 'p'))
  OR (SELECT count(*) = 3 FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
      WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p') AND NOT a.attisdropped
        AND (c.relname, a.attname) IN (('accounts', 'login'), ('tokens', 'secret'), ('jobs', 'job_type')))))";

/// `the schema a`, `the schemas a, b and 3 more`
std::string named(const std::vector<SchemaPlace>& places) {
  constexpr std::size_t shown = 3;
  std::vector<std::string> names;
  for (const auto& place : places)
    names.push_back(shown_text(place.name));
  const auto more = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : std::string();
  names.resize(std::min(names.size(), shown));
  return fmt::format("the schema{} {}{}", places.size() == 1 ? "" : "s", joined(names, ", "), more);
}

/// If the search_path has no schema: those that it names and the role may not use, as GRANT statements.
std::vector<std::string> missing_grants(db::Connection& connection) {
  return connection
      .run(R"(
SELECT format('GRANT USAGE ON SCHEMA %I TO %I;', n.nspname, current_user)
FROM pg_namespace n, unnest(string_to_array(current_setting('search_path'), ',')) WITH ORDINALITY p (entry, i)
WHERE current_schema() IS NULL AND btrim(p.entry) IN (n.nspname, quote_ident(n.nspname)) AND NOT has_schema_privilege(n.oid, 'USAGE')
ORDER BY p.i)")
      .values<std::string>();
}

}  // namespace

std::vector<SchemaPlace> other_places(db::Connection& connection) {
  std::vector<SchemaPlace> places;
  for (const auto& row : connection.run(R"(
SELECT n.nspname, has_schema_privilege(n.oid, 'USAGE') AS is_usable, n.nspname = ANY (current_schemas(false)) AS is_on_path,
  format('GRANT USAGE ON SCHEMA %I TO %I;', n.nspname, current_user) AS grant
FROM pg_namespace n
WHERE n.nspname IS DISTINCT FROM current_schema() AND )" +
                                        is_place_sql + R"(
ORDER BY 2 DESC, 1)")) {
    places.push_back({.name = row.text("nspname"),
                      .is_usable = row.flag("is_usable"),
                      .is_on_path = row.flag("is_on_path"),
                      .grant = row.text("grant")});
  }
  return places;
}

bool is_place(db::Connection& connection) {
  return !connection.run("SELECT FROM pg_namespace n WHERE n.nspname = current_schema() AND " + is_place_sql)
              .empty();
}

Error elsewhere(db::Connection& connection, const std::vector<SchemaPlace>& places) {
  const auto& first = places.front();
  if (!first.is_usable) {
    return {ExitCode::schema, fmt::format("the tables are in {}, which the role may not use", named(places)),
            first.grant};
  }
  const auto row = connection.run("SELECT current_setting('search_path') AS path, current_schema()")[0];
  const auto why = first.is_on_path ? fmt::format("the schema {} comes before it in the search_path",
                                                  shown_text(row.text("current_schema")))
                                    : std::string("the search_path is");
  return {
      ExitCode::schema,
      fmt::format("the tables are in {}, but {} {}", named(places), why, shown_text(row.text("path"))),
      fmt::format("run it as mailroom --schema {0}, or set database.schema to {0}", shell_word(first.name))};
}

void refuse_wrong_schema(db::Connection& connection) {
  if (is_place(connection)) return;
  if (const auto places = other_places(connection); !places.empty()) throw elsewhere(connection, places);
  const auto grants = missing_grants(connection);
  if (grants.empty()) return;
  throw Error(ExitCode::schema, "the role may not use a schema of its search_path", grants.front());
}

std::optional<SchemaPlace> passed_over(db::Connection& connection) {
  if (!connection.schema().empty()) return std::nullopt;
  const auto places = other_places(connection);
  const bool is_chosen =
      connection.run("SELECT source IN ('client', 'session') FROM pg_settings WHERE name = 'search_path'")
          .value<bool>();
  const auto found =
      std::ranges::find_if(places, [&](const SchemaPlace& place) { return place.is_on_path || !is_chosen; });
  return found == places.end() ? std::nullopt : std::optional(*found);
}

std::vector<std::string> neighbours(db::Connection& connection) {
  if (!connection.schema().empty()) return {};
  return connection
      .run(R"(
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname NOT IN ('schema_migrations', 'mailroom_schema_history')
  AND NOT EXISTS (SELECT FROM pg_settings s WHERE s.name = 'search_path' AND s.source IN ('client', 'session'))
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1)")
      .values<std::string>();
}

}  // namespace mailroom::schema
