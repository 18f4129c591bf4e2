#include "schema/recognition_records.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace mailroom {
namespace {

/// The columns in the order of the table: `version character varying(128)`, ...
std::vector<std::string> columns_of_record(Connection& connection) {
  std::vector<std::string> columns;
  for (const auto& row :
       connection.run("SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute "
                      "WHERE attrelid = to_regclass(format('%I.schema_migrations', current_schema())) "
                      "AND attnum > 0 AND NOT attisdropped ORDER BY attnum")) {
    columns.emplace_back(row[0].c_str());
  }
  return columns;
}

bool has(const std::vector<std::string>& columns, const std::string& column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

std::string listed(const std::vector<std::string>& columns) {
  std::string list;
  for (const auto& column : columns)
    list += (list.empty() ? "" : ", ") + column;
  return list;
}

}  // namespace

std::string probable_keeper(const std::vector<std::string>& columns, bool has_rails_metadata) {
  const auto begins = [&](const std::string& start) {
    return std::any_of(columns.begin(), columns.end(),
                       [&](const std::string& column) { return column.rfind(start, 0) == 0; });
  };
  if (begins("inserted_at ") && has(columns, "version bigint")) return "Ecto";
  if (has_rails_metadata && begins("version character varying")) return "Rails";
  if (columns.size() == 1 && begins("version character varying(")) return "dbmate";
  if (columns.size() == 1 && begins("version character varying")) return "Rails";
  if (columns.size() == 1 && begins("filename ")) return "Sequel";
  return {};
}

void require_own_record(Connection& connection) {
  const auto columns = columns_of_record(connection);
  if (has(columns, "version bigint") && has(columns, "dirty boolean")) return;
  const bool has_rails_metadata =
      connection
          .run("SELECT to_regclass(format('%I.ar_internal_metadata', current_schema())) IS NOT NULL")[0][0]
          .as<bool>();
  const auto keeper = probable_keeper(columns, has_rails_metadata);
  throw Error(ExitCode::schema,
              fmt::format("the table schema_migrations ({}) belongs to another tool{}", listed(columns),
                          keeper.empty() ? "" : ", probably " + keeper),
              "mailroom needs (version bigint, dirty boolean) there, as golang-migrate does, and does not "
              "change this table; " +
                  advice_of_own_schema());
}

std::optional<ForeignRecord> find_foreign_record(Connection& connection) {
  const auto rows = connection.run(
      "SELECT t.name, t.tool FROM (VALUES (1, 'goose_db_version', 'goose'), "
      "(2, 'flyway_schema_history', 'Flyway'), (3, 'schema_version', 'Flyway'), "
      "(4, 'databasechangelog', 'Liquibase'), (5, 'atlas_schema_revisions', 'Atlas'), "
      "(6, '_sqlx_migrations', 'sqlx')) t (rank, name, tool) "
      "WHERE to_regclass(format('%I.%I', current_schema(), t.name)) IS NOT NULL ORDER BY rank LIMIT 1");
  if (rows.empty()) return std::nullopt;
  return ForeignRecord{rows[0][0].c_str(), rows[0][1].c_str()};
}

std::string advice_of_own_schema() {
  return "give mailroom its own schema: CREATE SCHEMA mailroom, and "
         "?options=-csearch_path%3Dmailroom,public in the connection string";
}

}  // namespace mailroom
