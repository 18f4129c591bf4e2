// Lets one migrator at a time work on a schema, golang-migrate included.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// The key of golang-migrate 4's advisory lock: CRC-32 (IEEE) of schema, table and database name with a NUL
/// between them, times 1486364155, modulo 2^32.
std::int64_t golang_migrate_key(const std::string& database, const std::string& schema,
                                const std::string& table);

/// Takes the advisory locks that allow only one migrator on this schema, until the session ends: both keys
/// that golang-migrate may use, since its command line takes the database name from the URL's path, with the
/// slash. Waits up to `wait` for another migrator. Retries instead of queueing, because a waiting session
/// would block CREATE INDEX CONCURRENTLY. Throws Error(locked) with the pid of the holder. Calls `tell`,
/// which may be empty, once with the holder after a second.
void take_migration_lock(Connection& connection, Milliseconds wait,
                         const std::function<void(const std::string& text)>& tell = {});

}  // namespace mailroom
