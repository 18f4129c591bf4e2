#include <fmt/format.h>

#include "schema/catalogue.hpp"
#include "schema/migration.hpp"
#include "schema/statements.hpp"

namespace mailroom {
namespace {

/// A temporary schema that replaces another one, and the name of that one for in_place().
struct Scratch {
  std::string name;
  std::string search_path;
  std::string stands_for_name;     ///< quoted as an identifier if needed
  std::string stands_for_literal;  ///< quoted as a literal
};

void require_permission(pqxx::transaction_base& transaction) {
  const auto row = Connection::execute(
      transaction,
      "SELECT has_database_privilege(current_database(), 'CREATE'), "
      "format('GRANT CREATE ON DATABASE %I TO %I;', current_database(), current_user)")[0];
  if (row[0].as<bool>()) return;
  throw Error(ExitCode::schema,
              "the role may not create the temporary schema in which the migrations are built for comparison",
              std::string("run the command as the owner of the database, or: ") + row[1].c_str());
}

/// The schema of pgcrypto follows on the search_path: 0_init needs its functions, and accepts the extension
/// in any schema.
Scratch create_scratch(pqxx::transaction_base& transaction, const std::string& schema) {
  const auto names = Connection::execute(
      transaction,
      "SELECT s.name, concat_ws(', ', s.name, (SELECT quote_ident(n.nspname) FROM pg_extension e "
      "JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pgcrypto')), quote_ident($1), "
      "quote_literal($1) FROM (SELECT format('mailroom_scratch_%s_%s', pg_backend_pid(), "
      "floor(extract(epoch FROM clock_timestamp()))) AS name) s",
      schema)[0];
  Connection::execute(transaction, std::string("CREATE SCHEMA ") + names[0].c_str());
  return {names[0].c_str(), names[1].c_str(), names[2].c_str(), names[3].c_str()};
}

void replace_all(std::string& text, const std::string& part, const std::string& by) {
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + by.size()))
    text.replace(at, part.size(), by);
}

/// `catalogue` with the scratch schema's name replaced by the name of the schema that it stands for.
Catalogue in_place(Catalogue catalogue, const Scratch& scratch) {
  for (auto& [key, entry] : catalogue) {
    replace_all(entry.definition, "'" + scratch.name + "'", scratch.stands_for_literal);
    replace_all(entry.definition, scratch.name, scratch.stands_for_name);
  }
  return catalogue;
}

/// Runs a CONCURRENTLY migration without CONCURRENTLY, within the transaction: no other session uses the
/// tables.
void run_in_transaction(pqxx::transaction_base& transaction, const std::string& sql) {
  const auto statements = split_statements(sql);
  const bool is_alone = is_concurrent(statements);
  Connection::execute(transaction, is_alone ? without_concurrently(statements.front().text) : sql);
}

}  // namespace

std::vector<Catalogue> build_catalogues(pqxx::transaction_base& transaction, const std::string& schema) {
  require_permission(transaction);
  const auto scratch = create_scratch(transaction, schema);
  PreparedCatalogue prepared(transaction, scratch.name);
  std::vector<Catalogue> catalogues;
  for (const auto& migration : embedded_migrations()) {
    Connection::execute(transaction, "SELECT set_config('search_path', $1, true)", scratch.search_path);
    run_in_transaction(transaction, migration.up);
    catalogues.push_back(in_place(prepared.read(), scratch));
  }
  prepared.forget();
  return catalogues;
}

}  // namespace mailroom
