#pragma once

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "schema/migration_plan.hpp"

namespace mailroom {

/// schema_migrations(version bigint primary key, dirty boolean) as golang-migrate 4 keeps it: no row means
/// that nothing is applied, (0, false) that 0_init is. The table lives in the first schema of the
/// search_path.
SchemaState read_schema_state(Connection& connection);

/// Within the caller's transaction: makes `version` the one row, creating the table if need be.
void record_version(pqxx::transaction_base& transaction, std::optional<long> version);

/// Who changes the schema, with what, and why.
struct SchemaAuthor {
  std::string actor;            ///< `alice@host`
  std::string reason;           ///< may be empty
  std::string program_version;  ///< of mailroom
};

/// Within the caller's transaction: adds a row to mailroom_schema_history, creating the table if need be. The
/// checksum is the SHA-256 of the up file, without carriage returns. `direction` is up, down, adopt, baseline
/// or force.
void record_history(pqxx::transaction_base& transaction, const Migration& migration,
                    const std::string& direction, Milliseconds took, const SchemaAuthor& author);

/// Within the caller's transaction: makes `version` the recorded one though nothing was run, with a row of
/// history for each version up to it.
void record_claim(pqxx::transaction_base& transaction, long version, const std::string& direction,
                  const SchemaAuthor& author);

/// Throws Error with ExitCode::schema and what mends it unless this binary can work on the schema: it is at
/// least the newest version that the binary knows, not so new that it asks for a newer binary, and not dirty.
void require_current_schema(Connection& connection);

}  // namespace mailroom
