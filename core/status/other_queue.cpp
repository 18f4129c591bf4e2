// Asks only schemas that the role may read, and whose collector lock nobody holds.

#include "status/other_queue.hpp"

namespace mailroom {
namespace {

// The statement that counts the waiting tokens of each schema without a collector. The class of its
// collectors' lock is that of mailroom_lock_class() there.
constexpr const char* counts_sql = R"(
SELECT n.nspname, format($f$
  SELECT count(*) FROM (
    SELECT FROM %1$I.tokens t
    WHERE t.consumed_at IS NULL AND t.expires_at > extract(epoch FROM clock_timestamp())
      AND t.id > (SELECT coalesce(max(coalesce(
                           (SELECT b.cursor FROM %1$I.mailroom_batches b WHERE b.job_type = j.job_type
                            ORDER BY b.id DESC LIMIT 1), j.last_seq)), 0)
                  FROM %1$I.jobs j)
    LIMIT 1000) waiting$f$, n.nspname)
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
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
ORDER BY n.nspname)";

}  // namespace

std::optional<OtherQueue> find_other_queue(pqxx::transaction_base& transaction) {
  for (const auto& row : Connection::execute(transaction, counts_sql)) {
    const auto waiting = Connection::execute(transaction, row[1].c_str())[0][0].as<std::int64_t>();
    if (waiting > 0) return OtherQueue{.schema = row[0].c_str(), .waiting = waiting};
  }
  return std::nullopt;
}

}  // namespace mailroom
