// The settings of a session, in one place for every session of every command.

#include <array>
#include <fmt/format.h>

#include "db/connection.hpp"

namespace mailroom::db {
namespace {

struct SessionSetting {
  const char* name;
  const char* value;
  int since = 0;  ///< the first version of the server that knows it
};

constexpr int postgres_14 = 140000;
constexpr int postgres_16 = 160000;
constexpr int postgres_17 = 170000;

constexpr std::array settings{
    // What statements mean and may do.
    SessionSetting{"default_transaction_isolation", "'read committed'"},
    SessionSetting{"default_transaction_read_only", "off"},
    SessionSetting{"default_transaction_deferrable", "off"},
    SessionSetting{"synchronous_commit", "on"},
    SessionSetting{"row_security", "on"},
    SessionSetting{"standard_conforming_strings", "on"},
    SessionSetting{"backslash_quote", "safe_encoding"},
    SessionSetting{"array_nulls", "on"},
    SessionSetting{"transform_null_equals", "off"},
    SessionSetting{"exit_on_error", "off"},
    SessionSetting{"check_function_bodies", "on"},
    SessionSetting{"default_tablespace", "''"},
    // How values are read and written. The server's warnings stay out of the output.
    SessionSetting{"client_min_messages", "error"},
    SessionSetting{"bytea_output", "hex"},
    SessionSetting{"quote_all_identifiers", "off"},
    SessionSetting{"DateStyle", "'ISO, MDY'"},
    SessionSetting{"IntervalStyle", "postgres"},
    SessionSetting{"TimeZone", "'UTC'"},
    SessionSetting{"extra_float_digits", "1"},
    // How long a statement or a session may take: a command has its own limits.
    SessionSetting{"lock_timeout", "0"},
    SessionSetting{"idle_in_transaction_session_timeout", "0"},
    SessionSetting{"idle_session_timeout", "0", postgres_14},
    SessionSetting{"transaction_timeout", "0", postgres_17},
    // How statements are planned. To compile one takes longer than to run it.
    SessionSetting{"jit", "off"},
    SessionSetting{"plan_cache_mode", "auto"},
    SessionSetting{"cursor_tuple_fraction", "0.1"},
    SessionSetting{"from_collapse_limit", "8"},
    SessionSetting{"join_collapse_limit", "8"},
    SessionSetting{"constraint_exclusion", "partition"},
    SessionSetting{"enable_async_append", "on", postgres_14},
    SessionSetting{"enable_bitmapscan", "on"},
    SessionSetting{"enable_gathermerge", "on"},
    SessionSetting{"enable_group_by_reordering", "on", postgres_17},
    SessionSetting{"enable_hashagg", "on"},
    SessionSetting{"enable_hashjoin", "on"},
    SessionSetting{"enable_incremental_sort", "on"},
    SessionSetting{"enable_indexonlyscan", "on"},
    SessionSetting{"enable_indexscan", "on"},
    SessionSetting{"enable_material", "on"},
    SessionSetting{"enable_memoize", "on", postgres_14},
    SessionSetting{"enable_mergejoin", "on"},
    SessionSetting{"enable_nestloop", "on"},
    SessionSetting{"enable_parallel_append", "on"},
    SessionSetting{"enable_parallel_hash", "on"},
    SessionSetting{"enable_partition_pruning", "on"},
    SessionSetting{"enable_presorted_aggregate", "on", postgres_16},
    SessionSetting{"enable_seqscan", "on"},
    SessionSetting{"enable_sort", "on"},
    SessionSetting{"enable_tidscan", "on"},
};

}  // namespace

// The schema of pgcrypto follows on the search_path, since the extension may be in any. Without our own
// schema there is none: the next one may have tables of our names.
const char* const session_facts_sql = R"(
SELECT pg_backend_pid() AS pid, current_setting('server_version_num') AS version,
  current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS in_recovery, n.oid IS NOT NULL AS schema_exists,
  n.oid IS NOT NULL AND has_schema_privilege(n.oid, 'USAGE') AS may_use_schema,
  CASE WHEN n.oid IS NOT NULL AND has_schema_privilege(n.oid, 'USAGE') THEN
    concat_ws(', ', format('%I', $1::text), (
      SELECT format('%I', e.nspname) FROM pg_extension JOIN pg_namespace e ON e.oid = extnamespace
      WHERE extname = 'pgcrypto' AND e.nspname <> $1::name))
  ELSE format('%I', $1::text) END AS search_path
FROM (SELECT) one LEFT JOIN pg_namespace n ON n.nspname = $1::name)";

SessionFacts read_session_facts(const Row& row, const std::string& schema) {
  SessionFacts facts{.pid = row.number<int>("pid"),
                     .version = row.number<int>("version"),
                     .encoding = row.text("encoding"),
                     .in_recovery = row.flag("in_recovery")};
  if (schema.empty()) return facts;
  facts.schema_exists = row.flag("schema_exists");
  facts.may_use_schema = row.flag("may_use_schema");
  facts.search_path = row.text("search_path");
  return facts;
}

std::string session_settings(const SessionFacts& facts, Milliseconds statement_limit, bool for_transaction) {
  std::string sql;
  if (for_transaction) {
    // SET LOCAL reads nothing, so that the caller may still choose another isolation level.
    sql = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, NOT DEFERRABLE; ";
    if (!facts.in_recovery) sql += "SET LOCAL transaction_read_only = off; ";
  }
  const auto* set = for_transaction ? "SET LOCAL" : "SET";
  for (const auto& [name, value, since] : settings) {
    if (facts.version >= since) sql += fmt::format("{} {} = {}; ", set, name, value);
  }
  // From a database without an encoding read the bytes as they are: with UTF8 the server would refuse a whole
  // result for one invalid byte.
  const auto* encoding = facts.encoding == "SQL_ASCII" ? "SQL_ASCII" : "UTF8";
  sql += fmt::format("{0} client_encoding = '{1}'; {0} statement_timeout = {2}", set, encoding,
                     statement_limit.count());
  if (!facts.search_path.empty()) sql += fmt::format("; {} search_path = {}", set, facts.search_path);
  return sql;
}

}  // namespace mailroom::db
