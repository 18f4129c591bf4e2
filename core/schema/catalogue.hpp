// The objects of a schema with their definitions, in a form that can be compared.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::schema {

/// In the order of reports: objects come before those that depend on them.
enum class ObjectKind { type, table, column, constraint, index, trigger, rule, sequence, function };

/// `type`, `table`, ...
const char* object_kind_word(ObjectKind kind);

struct CatalogueKey {
  ObjectKind kind = ObjectKind::table;
  std::string name;  ///< without the schema: `tokens`, `tokens.secret`, `mailroom_claim(text, bigint)`

  auto operator<=>(const CatalogueKey&) const = default;
};

struct CatalogueEntry {
  /// As the server renders it with only pg_catalog on the search_path, so that all other names are qualified;
  /// without carriage returns.
  std::string definition;
  std::string table{};                 ///< the table that it belongs to; empty for none
  std::vector<std::string> columns{};  ///< the columns of that table that a constraint covers
  bool must_be_given = false;          ///< a column that an INSERT must set
  std::string body_digest{};           ///< SHA-256 of a trigger function's body without comments and layout
};

/// The objects of a schema.
using Catalogue = std::map<CatalogueKey, CatalogueEntry>;

/// Reads the catalogue of `schema` within the caller's transaction, without objects of extensions and the
/// records of migrations. `names` limits it to tables (with their parts), sequences, types and functions with
/// these names; empty: all. Sets the transaction's search_path to pg_catalog. Needs no privilege.
Catalogue read_catalogue(pqxx::transaction_base& transaction, const std::string& schema,
                         const std::vector<std::string>& names = {});

/// The catalogues of `schema` after each embedded migration, by version, that of the newest with the
/// functions; except for version `only`, if given, without definitions and digests, which are most of the
/// work. Runs the migrations in a scratch schema, so the caller must roll the transaction back. Does not
/// change or lock existing objects. Throws Error(schema) without the privilege to create schemas in the
/// database. Sets the transaction's search_path to pg_catalog.
std::vector<Catalogue> build_catalogues(pqxx::transaction_base& transaction, const std::string& schema,
                                        std::optional<long> only = {});

}  // namespace mailroom::schema
