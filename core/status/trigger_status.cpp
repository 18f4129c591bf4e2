// Reads pg_trigger, and session_replication_role where a new session gets it from.

#include "status/trigger_status.hpp"

#include "db/values.hpp"
#include "schema/schema_objects.hpp"

namespace mailroom::status {
namespace {

/// $1 the triggers, $2 the table of each.
constexpr const char* silent_sql = R"(
SELECT e.name, t.oid IS NULL AS is_missing
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY e (name, owner, n)
  LEFT JOIN pg_trigger t ON t.tgrelid = to_regclass(format('%I.%I', current_schema(), e.owner)) AND t.tgname = e.name::name
WHERE t.oid IS NULL OR t.tgenabled NOT IN ('O', 'A')
ORDER BY e.n)";

/// A role's setting often holds for the whole server, so roles that may not insert accounts here are left
/// out.
constexpr const char* replica_sql = R"(
SELECT CASE WHEN s.setrole <> 0 THEN 'the role ' || r.rolname
            WHEN s.setdatabase <> 0 THEN 'this database' ELSE 'every role' END AS place,
  CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ALTER ROLE ALL RESET session_replication_role;'
       WHEN s.setrole = 0 THEN format('ALTER DATABASE %I RESET session_replication_role;', current_database())
       WHEN s.setdatabase = 0 THEN format('ALTER ROLE %I RESET session_replication_role;', r.rolname)
       ELSE format('ALTER ROLE %I IN DATABASE %I RESET session_replication_role;', r.rolname, current_database()) END AS fix
FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole
WHERE EXISTS (SELECT FROM unnest(s.setconfig) c WHERE lower(c) = 'session_replication_role=replica')
  AND (s.setdatabase = 0 OR s.setdatabase = (SELECT d.oid FROM mailroom_this_database() d))
  AND (s.setrole = 0
       OR has_any_column_privilege(s.setrole, to_regclass(format('%I.accounts', current_schema())), 'INSERT'))
UNION ALL
SELECT 'the server', E'ALTER SYSTEM RESET session_replication_role;\nSELECT pg_reload_conf();'
FROM pg_settings
WHERE name = 'session_replication_role' AND reset_val = 'replica' AND source IN ('configuration file', 'command line')
ORDER BY 1)";

// The statement that counts the waiting tokens of each schema without a collector. The class of its
// collectors' lock is that of mailroom_lock_class() there.
constexpr const char* counts_sql = R"(
SELECT n.nspname, format($f$
  SELECT count(*) FROM (
    SELECT FROM %1$I.tokens t
    WHERE t.consumed_at IS NULL AND t.expires_at > extract(epoch FROM clock_timestamp())
      AND t.id > (SELECT coalesce(max(coalesce(
                           (SELECT b.cursor FROM %1$I.mailroom_batches b WHERE b.queue = j.job_type
                            ORDER BY b.id DESC LIMIT 1), j.last_seq)), 0)
                  FROM %1$I.jobs j)
    LIMIT 1000) waiting$f$, n.nspname) AS statement
FROM pg_namespace n
  JOIN pg_class t ON t.relnamespace = n.oid AND t.relname = 'tokens'
  JOIN pg_class j ON j.relnamespace = n.oid AND j.relname = 'jobs'
  JOIN pg_class b ON b.relnamespace = n.oid AND b.relname = 'mailroom_batches'
WHERE n.nspname <> current_schema() AND has_schema_privilege(n.oid, 'USAGE')
  AND (SELECT count(*) = 3 FROM pg_attribute a
       WHERE a.attrelid = t.oid AND a.attname IN ('id', 'consumed_at', 'expires_at')
         AND has_column_privilege(t.oid, a.attnum, 'SELECT'))
  AND has_table_privilege(j.oid, 'SELECT') AND has_table_privilege(b.oid, 'SELECT')
  AND NOT row_security_active(t.oid) AND NOT row_security_active(j.oid) AND NOT row_security_active(b.oid)
  AND NOT EXISTS (
    SELECT FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.objid = l.pid::oid
      AND l.classid = (hashtext('mailroom collector') # t.oid::integer)::oid
      AND l.database = (SELECT d.oid FROM mailroom_this_database() d))
ORDER BY n.nspname)";

}  // namespace

TriggerStatus read_trigger_status(pqxx::transaction_base& transaction) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> tables;
  for (const auto& trigger : schema::expected_triggers()) {
    names.push_back(trigger.name);
    tables.push_back(trigger.table);
  }
  TriggerStatus status;
  for (const auto& row :
       db::Connection::execute(transaction, silent_sql, db::array_text(names), db::array_text(tables)))
    status.silent.push_back({.name = row.text("name"), .is_missing = row.flag("is_missing")});
  for (const auto& row : db::Connection::execute(transaction, replica_sql))
    status.replica.push_back({.where = row.text("place"), .fix = row.text("fix")});
  return status;
}

std::optional<OtherQueue> find_other_queue(pqxx::transaction_base& transaction) {
  for (const auto& row : db::Connection::execute(transaction, counts_sql)) {
    const auto waiting = db::Connection::execute(transaction, row.text("statement")).value<std::int64_t>();
    if (waiting > 0) return OtherQueue{.schema = row.text("nspname"), .waiting = waiting};
  }
  return std::nullopt;
}

}  // namespace mailroom::status
