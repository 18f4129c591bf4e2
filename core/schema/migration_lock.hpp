#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// The key of golang-migrate 4's advisory lock: CRC-32 (IEEE) of schema, table and database name with a NUL
/// between them, times 1486364155, modulo 2^32.
std::int64_t golang_migrate_key(const std::string& database, const std::string& schema,
                                const std::string& table);

/// Takes the locks that keep every migrator off this schema but one, until the session ends: both keys that
/// golang-migrate may use, since its command line takes the database's name from the URL's path, with the
/// slash. Waits up to `wait` for another one to end, asking again rather than queueing: a session that waits
/// in the server would hold up CREATE INDEX CONCURRENTLY. Throws Error(locked), with the pid of who holds it.
void take_migration_lock(Connection& connection, Milliseconds wait);

}  // namespace mailroom
