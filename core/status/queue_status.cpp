// Reads the parts of a queue's status in one snapshot, which a table lock cannot hold up for long.

#include "status/queue_status.hpp"

#include <algorithm>
#include <numeric>

#include "base/actor.hpp"
#include "db/values.hpp"
#include "selection/selection.hpp"
#include "status/queue_sessions.hpp"

namespace mailroom {
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
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, s.cursor,
  (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM tokens_id_seq), s.open_from, s.gap_ids::text
FROM mailroom_queue_state($1) s)";

// $1 queue, $2 open_from
constexpr const char* open_batches_sql = R"(
SELECT b.id, (SELECT coalesce(sum(upper(g) - lower(g)), 0)::bigint FROM unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g), b.attempts,
  b.collector, b.claimed_by, (extract(epoch FROM clock_timestamp() - b.claimed_at) * 1000)::bigint
FROM mailroom_batches b
WHERE b.job_type = $1 AND b.id >= $2::bigint AND b.emitted_at IS NULL AND b.dead_at IS NULL
ORDER BY b.id)";

// $1 gaps
constexpr const char* gaps_sql = R"(
SELECT coalesce(sum(width) FILTER (WHERE horizon <> '0'), 0)::bigint,
  coalesce(sum(width) FILTER (WHERE horizon = '0'), 0)::bigint
FROM (
  SELECT horizon, (SELECT sum(upper(g) - lower(g)) FROM unnest(ids) g) AS width
  FROM mailroom_gaps
  WHERE id = ANY ($1::bigint[])) h)";

// $1 queue, $2 now in milliseconds. No index finds dead letters, so this reads a bounded number of recent
// rows.
constexpr const char* recent_sql = R"(
WITH recent AS MATERIALIZED (
  SELECT id, claimed_by, claimed_at, emitted_at, dead_at, emitted, skipped_expired, cursor, resent, key FROM mailroom_batches
  WHERE job_type = $1
  ORDER BY id DESC
  LIMIT 5000),
passed AS (
  SELECT id, coalesce(emitted_at, claimed_at) AS at, skipped_expired, cursor,
    max(cursor) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest
  FROM recent),
clock AS (SELECT to_timestamp($2::bigint / 1000.0) AS now),
-- Where the cursor has been before, an operator has moved it back: those tokens were judged then.
expired AS (
  SELECT sum(skipped_expired) AS tokens, max(at) AS last, min(id) AS first, min(coalesce(highest, 0)) AS above
  FROM passed, clock
  WHERE skipped_expired > 0 AND cursor > coalesce(highest, -1) AND at > clock.now - interval '1 hour')
SELECT 'known', 0,
  CASE WHEN count(*) < 5000 THEN 300000
       ELSE least(300000, greatest(1, extract(epoch FROM min(clock.now) - min(claimed_at)) * 1000))::bigint END,
  coalesce(max(cursor), 0), ''
FROM recent, clock
UNION ALL
-- An operator has had as many sent again.
SELECT 'expired', (e.tokens - r.tokens)::bigint, (extract(epoch FROM clock.now - e.last) * 1000)::bigint,
  coalesce($2::bigint - (SELECT t.created_at * 1000 FROM tokens t WHERE t.id > e.above ORDER BY t.id LIMIT 1), 0), ''
FROM expired e, clock, LATERAL (
  SELECT coalesce(sum(upper(g) - lower(g)), 0) AS tokens FROM recent s, unnest(s.resent) g WHERE s.id > e.first) r
WHERE e.tokens > r.tokens
UNION ALL
SELECT 'emitted', greatest(0, floor(date_part('epoch', clock.now - emitted_at) / 10))::bigint AS bucket,
  sum(emitted)::bigint, 0, ''
FROM recent, clock
WHERE emitted_at > clock.now - interval '300 seconds' AND emitted > 0
GROUP BY bucket
UNION ALL
SELECT 'key', sum(emitted)::bigint, (extract(epoch FROM clock.now - max(emitted_at)) * 1000)::bigint, 0, key
FROM recent, clock
WHERE emitted_at > clock.now - interval '1 hour' AND emitted > 0 AND key IS NOT NULL
GROUP BY key, clock.now
UNION ALL
SELECT 'dead-lettered', r.id, (extract(epoch FROM clock.now - r.dead_at) * 1000)::bigint, 0, r.claimed_by
FROM recent r, clock
WHERE r.emitted_at IS NULL AND r.dead_at > clock.now - interval '1 day'
UNION ALL
(SELECT 'last claim', r.id, (extract(epoch FROM clock.now - r.claimed_at) * 1000)::bigint, 0, r.claimed_by
 FROM recent r, clock
 WHERE r.claimed_by ~ '^mailroom (collect|send)[@ ]'
 ORDER BY r.id DESC
 LIMIT 1))";

/// $1 queue, $2 key: the tokens of the last hour that somebody has a link of, signed with this key, and no
/// newer one.
std::string links_of_key_sql() {
  return R"(
WITH recent AS MATERIALIZED (
  SELECT id, ids, ids_mask, key, emitted, emitted_at FROM mailroom_batches
  WHERE job_type = $1
  ORDER BY id DESC
  LIMIT 5000),
mine AS MATERIALIZED (
  SELECT i.id FROM recent b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g, generate_series(lower(g), upper(g) - 1) i (id)
  WHERE b.key = $2 AND b.emitted > 0 AND b.emitted_at > now() - interval '1 hour'
  ORDER BY b.id DESC
  LIMIT 10000)
SELECT count(*) FROM (SELECT DISTINCT id FROM mine) m JOIN tokens t ON t.id = m.id
WHERE mailroom_is_live(t.consumed_at, t.expires_at, floor(extract(epoch FROM now()))::bigint)
  AND NOT EXISTS (SELECT FROM mailroom_deliveries r WHERE r.queue = $1 AND r.token = t.id AND r.accepted_at IS NULL))" +
         signed_last_sql("$1", "(ARRAY[$2::text])");
}

/// Begins the transaction.
QueuePosition read_position(pqxx::transaction_base& transaction, const std::string& queue) {
  Connection::execute(transaction, begin_sql);
  const auto row = Connection::execute(transaction, position_sql, queue)[0];
  return {.now = moment_in<Milliseconds>(row[0]),
          .cursor = row[1].as<std::int64_t>(),
          .newest = row[2].as<std::int64_t>(),
          .open_from = row[3].as<std::int64_t>(),
          .gap_ids = row[4].c_str()};
}

void read_surroundings(pqxx::transaction_base& transaction, QueueStatus& status) {
  const auto row = Connection::execute(
      transaction,
      "SELECT pg_is_in_recovery(), quote_ident(current_user), quote_ident(current_schema()), "
      "coalesce(mailroom_home_problem(NULL), '')")[0];
  status.on_standby = row[0].as<bool>();
  status.role = row[1].c_str();
  status.schema = row[2].c_str();
  status.home_problem = row[3].c_str();
  status.host = host_name();
}

void read_sequences_behind(pqxx::transaction_base& transaction, QueueStatus& status) {
  for (auto& sequence : read_sequences(transaction)) {
    if (sequence.is_behind()) status.sequences_behind.push_back(std::move(sequence));
  }
}

void read_open_batches(pqxx::transaction_base& transaction, std::int64_t open_from, QueueStatus& status) {
  for (const auto& row : Connection::execute(transaction, open_batches_sql, status.queue, open_from)) {
    OpenBatch batch{.id = row[0].as<std::int64_t>(),
                    .tokens = row[1].as<std::int64_t>(),
                    .attempts = row[2].as<int>(),
                    .collector = row[3].as<int>(),
                    .claimed_by = row[4].c_str(),
                    .age = Milliseconds{std::max<std::int64_t>(row[5].as<std::int64_t>(), 0)}};
    batch.session_lives = std::any_of(
        status.collectors.begin(), status.collectors.end(),
        [&](const AttachedCollector& collector) { return collector.session.pid == batch.collector; });
    batch.process = see_process(batch.claimed_by, status.host);
    status.open_batches.push_back(std::move(batch));
  }
}

void read_gaps(pqxx::transaction_base& transaction, const std::string& gap_ids, QueueStatus& status) {
  const auto row = Connection::execute(transaction, gaps_sql, gap_ids)[0];
  status.gap_ids = row[0].as<std::int64_t>();
  status.replay_ids = row[1].as<std::int64_t>();
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
  const auto rows = Connection::execute(transaction, R"(
SELECT quote_ident(rolname) FROM pg_roles
WHERE rolname = ANY ($1::text[]) AND NOT has_function_privilege(oid, 'mailroom_release(integer)', 'EXECUTE')
ORDER BY 1 LIMIT 1)",
                                        array_text(roles));
  if (!rows.empty()) status.may_not_release = rows[0][0].c_str();
}

/// Counts what people have of the keys that no connected consumer signs with.
void count_links(pqxx::transaction_base& transaction, QueueStatus& status) {
  const auto is_of_consumer = [&](const RecentKey& key) {
    return std::ranges::any_of(status.collectors,
                               [&](const auto& collector) { return collector.key == key.fingerprint; });
  };
  for (auto& key : status.recent_keys) {
    if (is_of_consumer(key)) continue;
    key.tokens = Connection::execute(transaction, links_of_key_sql(), status.queue, key.fingerprint)[0][0]
                     .as<std::int64_t>();
  }
  std::erase_if(status.recent_keys, [](const RecentKey& key) { return key.tokens == 0; });
}

/// Returns the highest cursor that the queue had lately.
std::int64_t read_recent(pqxx::transaction_base& transaction, QueueStatus& status) {
  std::int64_t highest = 0;
  const auto now = std::chrono::floor<Milliseconds>(status.now.time_since_epoch()).count();
  for (const auto& row : Connection::execute(transaction, recent_sql, status.queue, now)) {
    const std::string kind = row[0].c_str();
    const auto number = row[1].as<std::int64_t>();
    const auto value = row[2].as<std::int64_t>();
    if (kind == "known") {
      status.emissions.known = Milliseconds{value};
      highest = row[3].as<std::int64_t>();
    } else if (kind == "expired") {
      status.expired.add(number, Milliseconds{value}, Milliseconds{row[3].as<std::int64_t>()});
    } else if (kind == "emitted") {
      status.emissions.tokens.at(
          std::min(static_cast<std::size_t>(number), RecentEmissions::bucket_count - 1)) += value;
    } else if (kind == "key") {
      status.recent_keys.push_back({row[4].c_str(), number, Milliseconds{std::max<std::int64_t>(value, 0)}});
    } else if (kind == "last claim") {
      status.last_claim =
          LastClaim{.claimed_by = row[4].c_str(), .age = Milliseconds{std::max<std::int64_t>(value, 0)}};
    } else {
      status.dead.push_back({.id = number,
                             .claimed_by = row[4].c_str(),
                             .age = Milliseconds{std::max<std::int64_t>(value, 0)}});
    }
  }
  keep_unsettled(transaction, status.dead);
  count_links(transaction, status);
  return highest;
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
  } catch (const DatabaseError& error) {
    if (error.sqlstate() != sqlstate::lock_not_available) throw;
    throw Error(ExitCode::locked, "a table of the queue is locked: " + std::string(error.what()),
                "find the session that holds it: SELECT pid, relation::regclass FROM pg_locks WHERE mode = "
                "'AccessExclusiveLock' AND granted");
  }
}

}  // namespace

std::int64_t RecentEmissions::total() const {
  return std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
}

double RecentEmissions::per_second() const {
  return known.count() > 0 ? static_cast<double>(total()) * 1000 / static_cast<double>(known.count()) : 0;
}

std::optional<RecentEmissions::Rate> RecentEmissions::last_rate(Milliseconds busy) const {
  constexpr std::ptrdiff_t most = std::chrono::seconds(60) / bucket;
  // The newest is not complete.
  const auto first = tokens.begin() + 1;
  auto last = first + std::clamp<std::ptrdiff_t>(std::min(busy, known) / bucket - 1, 0, most);
  while (last != first && *(last - 1) == 0)
    --last;
  if (last == first) return std::nullopt;
  const auto over = bucket * (last - first);
  return Rate{
      static_cast<double>(std::accumulate(first, last, std::int64_t{0})) / static_cast<double>(over.count()),
      over};
}

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
  status.lost = read_newest_lost_messages(transaction);
  status.accounts_without_token = count_accounts_without_token(transaction);
  status.rules = read_queue_rules(transaction, queue);
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
  const auto highest_cursor = read_recent(transaction, status);
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
      status.cursor == 0 && Connection::execute(transaction, "SELECT FROM tokens LIMIT 1").empty();
  if (is_unused) status.other = find_other_queue(transaction);
  return status;
}

PendingTokens read_pending_tokens(Connection& connection, const std::string& queue) {
  return unless_locked([&] {
    return connection.transact([&](pqxx::work& transaction) {
      const auto position = read_position(transaction, queue);
      auto pending = count_pending_tokens(transaction, queue, position);
      add_deferred(read_deferred_tokens(transaction, queue), pending);
      return pending;
    });
  });
}

QueueStatus read_queue_status(Connection& connection, const std::string& queue) {
  return unless_locked([&] {
    return connection.transact(
        [&](pqxx::work& transaction) { return read_queue_status_within(transaction, queue); });
  });
}

bool names_queues(const Settings& settings) {
  return setting_of(settings, "collect.queue").origin.kind != OriginKind::default_value;
}

std::vector<std::string> shown_queues(Connection& connection, const Settings& settings) {
  if (names_queues(settings)) return settings.collect.queues;
  std::vector<std::string> queues;
  for (const auto& row : connection.run(R"(
SELECT j.job_type FROM jobs j LEFT JOIN mailroom_queues q ON q.name = j.job_type
ORDER BY coalesce(q.priority, 0) DESC, j.job_type)"))
    queues.emplace_back(row[0].c_str());
  return queues.empty() ? settings.collect.queues : queues;
}

}  // namespace mailroom
