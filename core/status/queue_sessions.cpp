// The queries on pg_locks and pg_stat_activity. Advisory locks show what each session does.

#include "status/queue_sessions.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"

namespace mailroom::status {
namespace {

/// Columns of a row `a` of pg_stat_activity. For sessions of other users backend_start is null without
/// pg_read_all_stats.
const std::string session_columns = R"(
  a.pid, coalesce(a.application_name, '') AS application, coalesce(a.usename::text, '') AS "user",
  coalesce(host(a.client_addr), '') AS address, a.backend_start IS NOT NULL AS readable, coalesce(a.state, '') AS state,
  coalesce(CASE WHEN a.state = 'active' THEN a.wait_event_type || '/' || a.wait_event END, '') AS wait,
  coalesce(upper(substring(a.query FROM '^\s*([A-Za-z]{1,12})')), '') AS command,
  (extract(epoch FROM clock_timestamp() - a.backend_start) * 1000)::bigint AS connected_ms,
  (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::bigint AS transaction_ms,
  (extract(epoch FROM clock_timestamp() - a.state_change) * 1000)::bigint AS silent_ms)";

const std::string in_this_database = "l.database = (SELECT d.oid FROM mailroom_this_database() d)";

/// `sql` with the names in braces replaced. The migrations choose the advisory locks: a class of this schema,
/// and a hash of the name of a queue or budget, or a collector's pid; the polling lock has the table tokens.
std::string with_locks(const std::string& sql) {
  return fmt::format(
      fmt::runtime(sql), fmt::arg("session", session_columns), fmt::arg("in_this_database", in_this_database),
      fmt::arg("queue_lock", "mailroom_lock_class('queue')::oid"),
      fmt::arg("collector_lock", "mailroom_lock_class('collector')::oid"),
      fmt::arg("budget_lock", "mailroom_lock_class('budget')::oid"),
      fmt::arg("serving_lock", "mailroom_lock_class('serving')::oid"),
      fmt::arg("holds_polling_lock", "l.classid = 1835100526 AND l.objid = 'tokens'::regclass"));
}

// $1 queue. A collector holds a shared lock for each queue that it serves, unless another session keeps it
// from taking that lock.
const std::string collectors_sql = with_locks(R"(
SELECT {session},
  CASE WHEN served.this OR (SELECT count(*) FROM jobs) <= 1 THEN $1::text END AS queue,
  coalesce((
    SELECT min(lpad(to_hex(k.classid::bigint), 8, '0') || lpad(to_hex(k.objid::bigint), 8, '0'))
    FROM pg_locks k
    WHERE k.pid = l.pid AND k.locktype = 'advisory' AND k.objsubid = 1 AND k.mode = 'ShareLock'
      AND k.granted AND k.database = l.database), '') AS key,
  served.this IS FALSE AS is_elsewhere
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
CROSS JOIN LATERAL (
  SELECT bool_or(s.objid::bigint = hashtext($1::text)::bigint & 4294967295) AS this FROM pg_locks s
  WHERE s.pid = l.pid AND s.locktype = 'advisory' AND s.classid = {serving_lock} AND s.objsubid = 2 AND s.granted
    AND s.database = l.database) served
WHERE l.locktype = 'advisory' AND l.classid = {collector_lock} AND l.objid = l.pid::oid AND l.objsubid = 2
  AND mailroom_is_collector(l.pid) AND {in_this_database}
ORDER BY a.backend_start, a.pid)");

// Of the sessions with the lock of a queue or a budget, or the polling lock, lists only those that may not
// claim: others hold these locks as part of their work. Applications briefly take the polling lock in shared
// mode, as collectors take that of serving a queue.
const std::string foreign_locks_sql = with_locks(R"(
SELECT DISTINCT {session}
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND {in_this_database}
  AND CASE WHEN l.classid = {collector_lock} AND l.objid = l.pid::oid THEN NOT mailroom_is_collector(l.pid)
           -- A collector that takes a batch over holds the lock of its former owner until its commit.
           WHEN l.classid = {collector_lock} THEN l.mode = 'ExclusiveLock' OR NOT mailroom_is_collector(l.pid)
           WHEN l.classid IN ({queue_lock}, {budget_lock})
             OR ((l.classid = {serving_lock} OR ({holds_polling_lock})) AND l.mode = 'ExclusiveLock')
           THEN NOT EXISTS (
             SELECT FROM pg_roles r
             WHERE has_table_privilege(r.oid, 'mailroom_batches', 'INSERT')
               AND pg_has_role(a.usesysid, r.oid, 'MEMBER'))
           ELSE false END
ORDER BY a.pid)");

// $1 queue
const std::string lock_sql = with_locks(R"(
SELECT {session},
  (SELECT (extract(epoch FROM max(clock_timestamp() - w.waitstart)) * 1000)::bigint
   FROM pg_locks w
   WHERE w.locktype = 'advisory' AND w.classid = l.classid AND w.objid = l.objid AND w.objsubid = 2
     AND w.database = l.database AND NOT w.granted) AS longest_wait_ms
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.classid = {queue_lock}
  AND l.objid::bigint = hashtext($1::text)::bigint & 4294967295 AND l.objsubid = 2 AND l.granted
  AND {in_this_database})");

const std::string longest_commit_sql = with_locks(R"(
SELECT {session}
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.state = 'active' AND a.wait_event_type = 'IPC' AND a.wait_event = 'SyncRep'
ORDER BY a.state_change
LIMIT 1)");

// PostgreSQL takes this lock on "database 0" in PreCommit_Notify(), and keeps it until the commit is done.
const std::string notifier_sql = with_locks(R"(
SELECT {session}
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'object' AND l.database = 0 AND l.classid = 'pg_database'::regclass AND l.objid = 0
  AND l.mode = 'AccessExclusiveLock' AND l.granted
LIMIT 1)");

// $1 gaps. Chooses the transactions that a gap waits for as mailroom_check_gap does. A transaction that has
// inserted a token holds a lock on the table until it ends. The lock of a prepared transaction has no pid; it
// is found by the virtual transaction that holds the lock on its id: the one of its session, or -1/XID after
// a restart.
const std::string holders_sql = with_locks(R"(
WITH suspects AS (
  SELECT x::text::bigint & 4294967295 AS xid, sum(h.width)::bigint AS ids
  FROM (
    SELECT horizon, pending, (SELECT sum(upper(g) - lower(g)) FROM unnest(ids) g) AS width
    FROM mailroom_gaps
    WHERE id = ANY ($1::bigint[])) h,
    pg_snapshot_xip(pg_current_snapshot()) x
  WHERE x < h.horizon AND h.horizon < pg_snapshot_xmax(pg_current_snapshot())
    AND (h.pending IS NULL OR x = ANY (h.pending))
  GROUP BY x),
writers AS (
  SELECT l.pid, l.virtualtransaction FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.relation = 'tokens'::regclass AND l.mode = 'RowExclusiveLock'
    AND l.granted AND {in_this_database})
SELECT {session},
  s.ids, '' AS gid, EXISTS (SELECT FROM writers w WHERE w.pid = a.pid) AS writes
FROM suspects s JOIN pg_stat_activity a ON a.backend_xid::text::bigint = s.xid
UNION ALL
SELECT 0, '', p.owner::text, '', true, 'prepared', '', '', NULL,
  (extract(epoch FROM clock_timestamp() - p.prepared) * 1000)::bigint, NULL, s.ids, p.gid,
  EXISTS (
    SELECT FROM writers w JOIN pg_locks x ON x.virtualtransaction = w.virtualtransaction
    WHERE w.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid'
      AND x.transactionid = p.transaction AND x.mode = 'ExclusiveLock')
FROM suspects s JOIN pg_prepared_xacts p ON p.transaction::text::bigint = s.xid
ORDER BY writes DESC, 10 DESC NULLS LAST, 1)");

// Any database of the server: they share the queue. A listener takes its notifications when its transaction
// ends, and while its client reads them. Nothing shows which sessions listen; those with old transactions are
// the ones that may hold the queue back.
const std::string listeners_sql = with_locks(R"(
SELECT {session}
FROM pg_stat_activity a
WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()
  AND (a.xact_start IS NOT NULL OR a.wait_event = 'ClientWrite')
ORDER BY a.xact_start NULLS LAST, a.pid
LIMIT 100)");

std::optional<Milliseconds> read_duration(const db::Row& row, db::ColumnName name) {
  const auto duration = row.optional<std::int64_t>(name);
  return duration ? std::optional(Milliseconds{std::max<std::int64_t>(*duration, 0)}) : std::nullopt;
}

ServerSession read_session(const db::Row& row) {
  return {.pid = row.number<int>("pid"),
          .application = row.text("application"),
          .user = row.text("user"),
          .address = row.text("address"),
          .readable = row.flag("readable"),
          .state = row.text("state"),
          .wait = row.text("wait"),
          .command = row.text("command"),
          .connected_for = read_duration(row, "connected_ms"),
          .transaction_age = read_duration(row, "transaction_ms"),
          .silent_for = read_duration(row, "silent_ms")};
}

}  // namespace

ConnectedCollectors find_collectors(pqxx::transaction_base& transaction, const std::string& queue) {
  ConnectedCollectors collectors;
  for (const auto& row : db::Connection::execute(transaction, collectors_sql, queue)) {
    if (row.flag("is_elsewhere")) {
      collectors.elsewhere.push_back(read_session(row));
      continue;
    }
    collectors.here.push_back(
        {.session = read_session(row), .queue = row.optional<std::string>("queue"), .key = row.text("key")});
  }
  return collectors;
}

std::optional<QueueLockHolder> find_queue_lock(pqxx::transaction_base& transaction,
                                               const std::string& queue) {
  const auto rows = db::Connection::execute(transaction, lock_sql, queue);
  if (rows.empty()) return std::nullopt;
  return QueueLockHolder{.session = read_session(rows[0]),
                         .longest_wait = read_duration(rows[0], "longest_wait_ms")};
}

std::optional<ServerSession> find_longest_commit(pqxx::transaction_base& transaction) {
  const auto rows = db::Connection::execute(transaction, longest_commit_sql);
  return rows.empty() ? std::nullopt : std::optional(read_session(rows[0]));
}

std::optional<ServerSession> find_notifier(pqxx::transaction_base& transaction) {
  const auto rows = db::Connection::execute(transaction, notifier_sql);
  return rows.empty() ? std::nullopt : std::optional(read_session(rows[0]));
}

std::vector<ServerSession> find_foreign_locks(pqxx::transaction_base& transaction) {
  std::vector<ServerSession> sessions;
  for (const auto& row : db::Connection::execute(transaction, foreign_locks_sql))
    sessions.push_back(read_session(row));
  return sessions;
}

NotificationQueue read_notification_queue(pqxx::transaction_base& transaction) {
  NotificationQueue queue;
  queue.usage = db::Connection::execute(transaction, "SELECT pg_notification_queue_usage()").value<double>();
  if (queue.usage < NotificationQueue::worth_a_look) return queue;
  for (const auto& row : db::Connection::execute(transaction, listeners_sql))
    queue.open_transactions.push_back(read_session(row));
  return queue;
}

std::vector<GapHolder> find_gap_holders(pqxx::transaction_base& transaction, const std::string& gap_ids) {
  std::vector<GapHolder> holders;
  for (const auto& row : db::Connection::execute(transaction, holders_sql, gap_ids)) {
    holders.push_back({.session = read_session(row),
                       .gid = row.text("gid"),
                       .writes_tokens = row.flag("writes"),
                       .ids = row.number("ids")});
  }
  return holders;
}

std::string age_text(Milliseconds age) {
  using namespace std::chrono_literals;
  if (age < 1s) return format_duration(age);
  if (age >= 24h) return format_duration(std::chrono::floor<std::chrono::hours>(age));
  if (age >= 1h) return format_duration(std::chrono::floor<std::chrono::minutes>(age));
  return format_duration(std::chrono::floor<std::chrono::seconds>(age));
}

std::string session_text(const ServerSession& session) {
  return fmt::format("pid {} ({}, user {})", session.pid,
                     session.application.empty() ? "no application name" : session.application, session.user);
}

std::string activity_text(const ServerSession& session) {
  if (!session.readable) return "owned by another user; needs pg_monitor";
  auto text = session.state;
  if (session.silent_for) text += " for " + age_text(*session.silent_for);
  if (!session.wait.empty()) text += ", waiting for " + session.wait;
  if (!session.command.empty()) text += (session.state == "active" ? " in " : " after ") + session.command;
  return text;
}

}  // namespace mailroom::status
