// Computes the keys as golang-migrate does, and names the session that holds them.

#include "schema/migration_lock.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace mailroom {
namespace {

std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

std::array<std::int64_t, 2> lock_keys(Connection& connection) {
  const auto row = connection.run("SELECT current_database(), coalesce(current_schema(), '')")[0];
  const std::string database = row[0].c_str();
  const std::string schema = row[1].c_str();
  return {golang_migrate_key(database, schema, "schema_migrations"),
          golang_migrate_key("/" + database, schema, "schema_migrations")};
}

/// Takes both locks or neither.
bool try_to_lock(Connection& connection, const std::array<std::int64_t, 2>& keys) {
  return connection
      .run(
          "SELECT CASE WHEN NOT pg_try_advisory_lock($1::bigint) THEN false "
          "WHEN pg_try_advisory_lock($2::bigint) THEN true ELSE NOT pg_advisory_unlock($1::bigint) END",
          keys[0], keys[1])[0][0]
      .as<bool>();
}

/// The session that holds one of the locks: pid and application_name; no row if none does.
pqxx::result lock_holder(Connection& connection, const std::array<std::int64_t, 2>& keys) {
  return connection.run(
      "SELECT l.pid, coalesce(a.application_name, '') FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid "
      "= l.pid "
      "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.pid <> pg_backend_pid() "
      "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
      "AND (l.classid::bigint << 32) + l.objid::bigint IN ($1::bigint, $2::bigint) LIMIT 1",
      keys[0], keys[1]);
}

Error locked_by_another(Connection& connection, const std::array<std::int64_t, 2>& keys) {
  const auto rows = lock_holder(connection, keys);
  const std::string message = "another migration is running on this schema";
  if (rows.empty()) return Error(ExitCode::locked, message, "it has just ended: run the command again");
  const auto pid = rows[0][0].as<int>();
  const std::string name = rows[0][1].c_str();
  return Error(ExitCode::locked, message,
               fmt::format("pid {} holds its lock ({}): wait for it with --wait 5m, or terminate it with "
                           "SELECT pg_terminate_backend({})",
                           pid, name.empty() ? "no application_name, as with golang-migrate" : name, pid));
}

}  // namespace

std::int64_t golang_migrate_key(const std::string& database, const std::string& schema,
                                const std::string& table) {
  constexpr std::uint32_t salt = 1486364155;
  constexpr char separator = '\0';
  return crc32(schema + separator + table + separator + database) * salt;
}

void take_migration_lock(Connection& connection, Milliseconds wait,
                         const std::function<void(const std::string& text)>& tell) {
  constexpr Milliseconds interval{100};
  constexpr Milliseconds silence{1000};
  const auto keys = lock_keys(connection);
  const auto start = steady_now();
  for (bool told = !tell; !try_to_lock(connection, keys);) {
    const auto now = steady_now();
    if (now >= start + wait) throw locked_by_another(connection, keys);
    if (!told && now >= start + silence) {
      for (const auto& row : lock_holder(connection, keys))
        tell(fmt::format("waiting for another migration, of pid {} ({})", row[0].c_str(), row[1].c_str()));
      told = true;
    }
    std::this_thread::sleep_for(interval);
  }
}

}  // namespace mailroom
