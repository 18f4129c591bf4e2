// Reads the parts of a queue's status in one snapshot, which a table lock cannot hold up for long.

#include "status/queue_status.hpp"

#include <algorithm>

#include "base/actor.hpp"
#include "db/values.hpp"
#include "status/queue_sessions.hpp"
#include "status/recent_batches.hpp"

namespace mailroom::status {
namespace {

// One snapshot, and index plans whatever the statistics say. row_security = off raises an error where row
// security would hide rows. The lock timeout keeps status from hanging behind a locked table.
constexpr const char* begin_sql = R"(
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL lock_timeout = '2s';
SET LOCAL row_security = off;
SET LOCAL jit = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off)";

constexpr const char* position_sql = R"(
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms, s.cursor,
  (SELECT id FROM mailroom_last_drawn_token()) AS newest, s.open_from, s.gap_ids::text AS gap_ids
FROM mailroom_queue_state($1) s)";

// $1 queue, $2 open_from
constexpr const char* open_batches_sql = R"(
SELECT b.id, (SELECT coalesce(sum(upper(g) - lower(g)), 0)::bigint FROM unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g) AS tokens,
  b.attempts, b.collector, b.claimed_by, (extract(epoch FROM clock_timestamp() - b.claimed_at) * 1000)::bigint AS age_ms
FROM mailroom_batches b
WHERE b.queue = $1 AND b.id >= $2::bigint AND b.emitted_at IS NULL AND b.dead_at IS NULL
ORDER BY b.id)";

// $1 gaps
constexpr const char* gaps_sql = R"(
SELECT coalesce(sum(width) FILTER (WHERE horizon <> '0'), 0)::bigint AS in_gaps,
  coalesce(sum(width) FILTER (WHERE horizon = '0'), 0)::bigint AS in_replay
FROM (
  SELECT horizon, (SELECT sum(upper(g) - lower(g)) FROM unnest(ids) g) AS width
  FROM mailroom_gaps
  WHERE id = ANY ($1::bigint[])) h)";

/// Begins the transaction.
QueuePosition read_position(pqxx::transaction_base& transaction, const std::string& queue) {
  db::Connection::execute(transaction, begin_sql);
  const auto row = db::Connection::execute(transaction, position_sql, queue)[0];
  return {.now = row.moment<Milliseconds>("now_ms"),
          .cursor = row.number("cursor"),
          .newest = row.number("newest"),
          .open_from = row.number("open_from"),
          .gap_ids = row.text("gap_ids")};
}

void read_surroundings(pqxx::transaction_base& transaction, QueueStatus& status) {
  const auto row = db::Connection::execute(
      transaction,
      "SELECT pg_is_in_recovery() AS on_standby, quote_ident(current_user) AS role, "
      "quote_ident(current_schema()) AS schema, "
      "coalesce(mailroom_home_problem(NULL), mailroom_loaded_problem(), '') AS home_problem")[0];
  status.on_standby = row.flag("on_standby");
  status.role = row.text("role");
  status.schema = row.text("schema");
  status.home_problem = row.text("home_problem");
  status.host = host_name();
  status.foreign = queue::read_foreign_consumers(transaction);
}

void read_sequences_behind(pqxx::transaction_base& transaction, QueueStatus& status) {
  for (auto& sequence : queue::read_sequences(transaction)) {
    if (sequence.is_behind()) status.sequences_behind.push_back(std::move(sequence));
  }
}

void read_open_batches(pqxx::transaction_base& transaction, std::int64_t open_from, QueueStatus& status) {
  for (const auto& row : db::Connection::execute(transaction, open_batches_sql, status.queue, open_from)) {
    OpenBatch batch{.id = row.number("id"),
                    .tokens = row.number("tokens"),
                    .attempts = row.number<int>("attempts"),
                    .collector = row.number<int>("collector"),
                    .claimed_by = row.text("claimed_by"),
                    .age = Milliseconds{std::max<std::int64_t>(row.number("age_ms"), 0)}};
    batch.session_lives = std::any_of(
        status.collectors.begin(), status.collectors.end(),
        [&](const AttachedCollector& collector) { return collector.session.pid == batch.collector; });
    batch.process = see_process(batch.claimed_by, status.host);
    status.open_batches.push_back(std::move(batch));
  }
}

void read_gaps(pqxx::transaction_base& transaction, const std::string& gap_ids, QueueStatus& status) {
  const auto row = db::Connection::execute(transaction, gaps_sql, gap_ids)[0];
  status.gap_ids = row.number("in_gaps");
  status.replay_ids = row.number("in_replay");
  if (status.gap_ids > 0) status.gap_holders = find_gap_holders(transaction, gap_ids);
}

/// The first role of the connected consumers that may not execute mailroom_release(). A role may be gone.
void read_schedule(pqxx::transaction_base& transaction, QueueStatus& status) {
  status.scheduled = read_scheduled_messages(transaction);
  std::vector<std::string> roles;
  for (const auto& collector : status.collectors)
    roles.push_back(collector.session.user);
  for (const auto& session : status.elsewhere)
    roles.push_back(session.user);
  const auto rows = db::Connection::execute(transaction, R"(
SELECT quote_ident(rolname) FROM pg_roles
WHERE rolname = ANY ($1::text[]) AND NOT has_function_privilege(oid, 'mailroom_release(integer)', 'EXECUTE')
ORDER BY 1 LIMIT 1)",
                                            db::array_text(roles));
  if (!rows.empty()) status.may_not_release = rows.text();
}

void add_deferred(const DeferredTokens& deferred, PendingTokens& pending) {
  pending.deferred = deferred.tokens;
  const auto& created_at = deferred.oldest_created_at;
  if (created_at)
    pending.oldest_created_at = std::min(pending.oldest_created_at.value_or(*created_at), *created_at);
}

/// Explains that a table is locked.
template <typename Read>
auto unless_locked(const Read& read) {
  try {
    return read();
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != db::sqlstate::lock_not_available) throw;
    throw Error(ExitCode::locked, "a table of the queue is locked: " + std::string(error.what()),
                "find the session that holds it: SELECT pid, relation::regclass FROM pg_locks WHERE mode = "
                "'AccessExclusiveLock' AND granted");
  }
}

}  // namespace

std::optional<Milliseconds> QueueStatus::lag() const {
  if (!pending.oldest_created_at) return std::nullopt;
  return std::max(std::chrono::floor<Milliseconds>(now - *pending.oldest_created_at), Milliseconds{0});
}

QueueStatus read_queue_status_within(pqxx::transaction_base& transaction, const std::string& queue) {
  const auto position = read_position(transaction, queue);
  QueueStatus status;
  status.queue = queue;
  status.now = position.now;
  status.cursor = position.cursor;
  status.newest = position.newest;
  read_surroundings(transaction, status);
  read_sequences_behind(transaction, status);
  status.triggers = read_trigger_status(transaction);
  status.shadows = find_shadows(transaction);
  status.lost = read_newest_lost_messages(transaction);
  status.accounts_without_token = count_accounts_without_token(transaction);
  status.record = queue::read_records(transaction, {queue}).at(0);
  auto connected = find_collectors(transaction, queue);
  status.collectors = std::move(connected.here);
  status.elsewhere = std::move(connected.elsewhere);
  for (auto& collector : status.collectors)
    collector.process = see_process(collector.session.application, status.host);
  status.lock = find_queue_lock(transaction, queue);
  status.longest_commit = find_longest_commit(transaction);
  status.foreign_locks = find_foreign_locks(transaction);
  if (!status.on_standby) status.notifications = read_notification_queue(transaction);
  read_open_batches(transaction, position.open_from, status);
  read_gaps(transaction, position.gap_ids, status);
  const auto highest_cursor = read_recent_batches(transaction, status);
  status.went_back = read_went_back(transaction);
  status.pending = count_pending_tokens(transaction, queue, position);
  status.deliveries = read_delivery_status(transaction, queue);
  status.came_back = read_came_back(transaction, queue);
  add_deferred(status.deliveries.deferred, status.pending);
  status.expired.add(status.deliveries.expired);
  read_schedule(transaction, status);
  status.untaken = read_untaken_actions(transaction);
  if (status.cursor >= highest_cursor) status.expired.add(status.pending.expired);
  if (status.expired.tokens > 0 && may_read_operations(transaction)) {
    const auto revoked = count_revoked_unsent(transaction, queue);
    if (revoked >= status.expired.tokens) status.expired = {};
    if (revoked < status.expired.tokens) status.expired.tokens -= revoked;
  }
  const bool is_unused =
      status.cursor == 0 && db::Connection::execute(transaction, "SELECT FROM tokens LIMIT 1").empty();
  if (is_unused) status.other = find_other_queue(transaction);
  return status;
}

PendingTokens read_pending_tokens(db::Connection& connection, const std::string& queue) {
  return unless_locked([&] {
    return connection.transact([&](pqxx::work& transaction) {
      const auto position = read_position(transaction, queue);
      auto pending = count_pending_tokens(transaction, queue, position);
      add_deferred(read_deferred_tokens(transaction, queue), pending);
      return pending;
    });
  });
}

QueueStatus read_queue_status(db::Connection& connection, const std::string& queue) {
  return unless_locked([&] {
    return connection.transact(
        [&](pqxx::work& transaction) { return read_queue_status_within(transaction, queue); });
  });
}

bool names_queues(const config::Settings& settings) {
  return config::setting_of(settings, "collect.queue").origin.kind != config::OriginKind::default_value;
}

std::vector<std::string> shown_queues(db::Connection& connection, const config::Settings& settings) {
  if (names_queues(settings)) return settings.collect.queues;
  const auto queues = connection
                          .run(R"(
SELECT j.job_type FROM jobs j LEFT JOIN mailroom_queues q ON q.name = j.job_type
ORDER BY coalesce(q.priority, 0) DESC, j.job_type)")
                          .values<std::string>();
  return queues.empty() ? settings.collect.queues : queues;
}

}  // namespace mailroom::status
