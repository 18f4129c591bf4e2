// Which version a schema has, how it came to it, and whether this binary can work on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "schema/migration_plan.hpp"

namespace mailroom::schema {

/// A row of mailroom_schema_history.
struct SchemaChange {
  Moment at{};
  std::int64_t version = 0;
  std::string name{};
  std::string direction{};  ///< up, down, adopt, baseline or force
  Milliseconds duration{};
  std::string actor{};
  std::string db_user{};
  std::string reason{};
};

/// Reads mailroom_schema_history, oldest first. Empty if another tool created the schema.
std::vector<SchemaChange> read_schema_history(pqxx::transaction_base& transaction);

/// Checks only the schema in which mailroom would create the table; other schemas of the search_path may
/// belong to other applications.
bool has_table(pqxx::transaction_base& transaction, const std::string& table);

/// True if one of accounts, tokens and jobs exists.
bool has_tables_of_our_names(db::Connection& connection);

/// Reads schema_migrations(version bigint primary key, dirty boolean) as golang-migrate 4 keeps it in the
/// first schema of the search_path: no row means that nothing is applied, (0, false) that 0_init is applied.
SchemaState read_schema_state(db::Connection& connection);

/// Within the caller's transaction: makes `version` the only row (nullopt: no row). Creates the table if
/// needed.
void record_version(pqxx::transaction_base& transaction, std::optional<long> version);

/// The actor of a schema change, the reason and the program.
struct SchemaAuthor {
  std::string actor;            ///< `alice@host`
  std::string reason;           ///< may be empty
  std::string program_version;  ///< of mailroom
};

/// Within the caller's transaction: adds a row to mailroom_schema_history. Creates the table if needed. The
/// checksum is the SHA-256 of the up file without carriage returns, or that of the set of functions.
/// `direction` is up, down, adopt, baseline or force.
void record_history(pqxx::transaction_base& transaction, const Migration& migration,
                    const std::string& direction, Milliseconds took, const SchemaAuthor& author);

/// Within the caller's transaction: records `version` without running a migration, with a row of history for
/// each version up to it.
void record_claim(pqxx::transaction_base& transaction, long version, const std::string& direction,
                  const SchemaAuthor& author);

/// The oldest mailroom that may work on the schema, as the newest schema version that it must know: the
/// result of the schema's function mailroom_minimum_client(), or 0 without that function. A migration that
/// breaks older binaries replaces the function, so binaries that do not know the migration get the answer
/// too, with any role and whichever tool ran the migration.
long read_minimum_client(db::Connection& connection);

/// Throws Error(schema) unless the current schema has mailroom's tables: they are in another schema of the
/// database, or nowhere.
void require_tables(db::Connection& connection, const SchemaState& state);

/// Throws Error(schema), with a fix as the hint, unless a binary that knows versions up to `newest` may work
/// on a schema of version `version`: the schema is too old, or it requires a newer binary.
void require_fitting(long version, long newest, long minimum_client);

/// Throws Error(schema), with a fix as the hint, if the functions of the newest version that this binary
/// knows are absent, or older than those of this binary.
void require_functions(FunctionState functions);

/// Why functions of the set of this binary do not work: FunctionState::elsewhere.
constexpr std::string_view renamed_text =
    "the functions of the schema look for its tables in another schema: this one was renamed";

/// Throws Error(schema), with a fix as the hint, unless this binary can work on the schema: its version is at
/// least the newest that this binary knows, it does not require a newer binary, it is not dirty, and its
/// functions are not older than those of this binary.
void require_current_schema(db::Connection& connection);

}  // namespace mailroom::schema
