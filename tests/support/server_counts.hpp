#pragma once

#include <algorithm>
#include <ctime>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/server_log.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

// What statements cost the server, in counts that are the same on every machine. They are those of the whole
// server, so a test that uses them runs alone on one.

/// New sessions of the database log each statement with its plan, including statements within functions.
inline void log_everything(const TestDatabase& database) {
  const auto connection = database.connect();
  for (const auto* setting :
       {"session_preload_libraries = 'auto_explain'", "auto_explain.log_min_duration = 0",
        "auto_explain.log_nested_statements = on", "auto_explain.log_analyze = on",
        "auto_explain.log_timing = off", "log_statement = 'all'"})
    connection->run("ALTER DATABASE " + database.name() + " SET " + setting);
}

inline std::vector<std::string> with(const std::vector<std::string>& entries, const std::string& words) {
  std::vector<std::string> found;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(found),
               [&](const auto& entry) { return entry.find(words) != std::string::npos; });
  return found;
}

/// The plans that one session of a database that logs everything has run in `body`.
inline std::vector<std::string> plans_in(db::Connection& connection, const std::function<void()>& body) {
  const auto pid = value<int>(connection, "SELECT pg_backend_pid()");
  const ServerLog log;
  body();
  return with(log.entries_of(pid), " plan:\n");
}

inline std::int64_t xid(db::Connection& connection) {
  return value<std::int64_t>(connection, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint");
}

/// Autovacuum would analyze tables with more than 50 new rows, which takes a transaction id and writes WAL.
inline void keep_autovacuum_away(db::Connection& connection) {
  for (const auto& row :
       connection.run("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'"))
    connection.run("ALTER TABLE " + row[0].as<std::string>() + " SET (autovacuum_enabled = off)");
}

inline std::int64_t wal_bytes(db::Connection& connection) {
  return value<std::int64_t>(connection,
                             "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint");
}

/// The CPU time that a process of this machine has used, in seconds.
inline double cpu_seconds(int pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
    throw std::runtime_error("the server is not of this machine");
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace mailroom::test
