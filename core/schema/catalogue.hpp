#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom {

/// In the order in which they are told of: what others rest on comes first.
enum class ObjectKind { type, table, column, constraint, index, trigger, rule, sequence, function };

/// `type`, `table`, ...
const char* object_kind_word(ObjectKind kind);

struct CatalogueKey {
  ObjectKind kind = ObjectKind::table;
  std::string name;  ///< without the schema: `tokens`, `tokens.secret`, `mailroom_claim(text, bigint)`

  auto operator<=>(const CatalogueKey&) const = default;
};

struct CatalogueEntry {
  /// As this server renders it while nothing but pg_catalog is on the search_path, so that every other name
  /// is qualified; without carriage returns.
  std::string definition;
  std::string table{};                 ///< that it belongs to; empty for none
  std::vector<std::string> columns{};  ///< of that table, on which a constraint stands
  bool must_be_given = false;          ///< a column that an INSERT has to name
  std::string body_digest{};           ///< SHA-256 of a trigger function's body without comments and layout
};

/// What a schema holds.
using Catalogue = std::map<CatalogueKey, CatalogueEntry>;

/// The catalogue of `schema` within the caller's transaction, without what belongs to an extension and
/// without the records of migrations. `names`: tables, sequences, types and functions with one of these names
/// alone, and what is attached to these tables; none: all. Leaves pg_catalog alone on the transaction's
/// search_path. Needs no privilege.
Catalogue read_catalogue(pqxx::transaction_base& transaction, const std::string& schema,
                         const std::vector<std::string>& names = {});

/// Reads the catalogue of a schema again and again within a transaction: the query is worth more to plan than
/// to run.
class PreparedCatalogue {
 public:
  /// `schema` is an identifier that needs no quotes, and that no prepared statement of the session has.
  PreparedCatalogue(pqxx::transaction_base& transaction, std::string schema);

  /// As read_catalogue() of everything.
  Catalogue read();
  /// Leaves nothing behind in the session.
  void forget();

 private:
  pqxx::transaction_base& transaction_;
  std::string schema_;
};

/// What each of the embedded migrations, by version, would leave behind in `schema`: they are run in a schema
/// of their own and looked at after each, so the caller's transaction must be rolled back. Touches and locks
/// nothing that exists. Needs the privilege to create schemas in the database; throws Error(schema) without
/// it. Leaves pg_catalog alone on the search_path.
std::vector<Catalogue> build_catalogues(pqxx::transaction_base& transaction, const std::string& schema);

}  // namespace mailroom
