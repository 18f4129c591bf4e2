// Counts some thousand tokens exactly, and estimates the rest from samples of ids.

#include "status/pending_tokens.hpp"

#include <algorithm>
#include <cmath>

#include "db/values.hpp"

namespace mailroom::status {
namespace {

constexpr std::int64_t exact_limit = 5'000;
constexpr std::int64_t whole_size = 1'024;
constexpr std::int64_t slice_size = 128;

constexpr std::int64_t life_step = 30;  ///< seconds

// $1 cursor, $2 newest id, $3 now, $4 queue. A row for each half a minute of life, and for the rest.
constexpr const char* above_cursor_sql = R"(
SELECT count(*) AS examined, count(*) FILTER (WHERE is_waiting) AS waiting,
  min(created_at) FILTER (WHERE is_waiting) AS oldest_waiting, max(id) AS last,
  CASE WHEN is_waiting THEN (expires_at - $3::bigint) / 30 END AS life,
  count(*) FILTER (WHERE is_expired) AS expired, max(expires_at) FILTER (WHERE is_expired) AS last_expired,
  min(created_at) FILTER (WHERE is_expired) AS oldest_expired
FROM (
  SELECT s.id, s.created_at, s.expires_at, s.state = 'due' AND mailroom_takes(q.actions, s.action) AS is_waiting,
    s.state = 'expired' AND s.expires_at > $3::bigint - 3600 AND mailroom_takes(q.actions, s.action) AS is_expired
  FROM (
    SELECT t.id, t.created_at, t.expires_at, t.action,
      mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, $3::bigint) AS state
    FROM tokens t LEFT JOIN accounts a ON a.id = t.account
    WHERE t.id > $1::bigint AND t.id <= $2::bigint
    ORDER BY t.id
    LIMIT 5001) s, (SELECT mailroom_queue_actions($4) AS actions) q) t
GROUP BY life)";

// $1, $2 the first ids of the samples and the ends (exclusive), $3 now, $4 queue. The limit keeps each sample
// an index range scan, whatever the statistics say.
constexpr const char* samples_sql = R"(
SELECT s.n, count(*) FILTER (WHERE d.is_due) AS waiting, min(t.created_at) FILTER (WHERE d.is_due) AS oldest_waiting,
  CASE WHEN d.is_due THEN (t.expires_at - $3::bigint) / 30 END AS life,
  count(*) FILTER (WHERE NOT d.is_due) AS expired, max(t.expires_at) FILTER (WHERE NOT d.is_due) AS last_expired,
  min(t.created_at) FILTER (WHERE NOT d.is_due) AS oldest_expired
FROM (SELECT mailroom_queue_actions($4) AS actions) q, unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS s (first, last, n),
  LATERAL (
    SELECT id, action, account, expires_at, consumed_at, created_at FROM tokens
    WHERE id >= s.first AND id < s.last
    ORDER BY id
    LIMIT 5000) t
  LEFT JOIN accounts a ON a.id = t.account,
  LATERAL (SELECT mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, $3::bigint) AS state) f,
  LATERAL (SELECT f.state = 'due' AS is_due) d
WHERE (d.is_due OR (f.state = 'expired' AND t.expires_at > $3::bigint - 3600)) AND mailroom_takes(q.actions, t.action)
GROUP BY s.n, life)";

// $1 queue, $2 open_from, $3 gaps, $4 now. Reads only gaps that can have changed since the last check by a
// claim, as mailroom_check_gaps does: no ids of the others have become visible.
constexpr const char* passed_sql = R"(
WITH sources AS (
  SELECT 'batch' AS kind, mailroom_batch_ids(b.ids, b.ids_mask) AS ids FROM mailroom_batches b
  WHERE b.queue = $1 AND b.id >= $2::bigint AND b.emitted_at IS NULL AND b.dead_at IS NULL
  UNION ALL
  SELECT CASE WHEN h.horizon = '0' THEN 'replay' ELSE 'gap' END, h.ids FROM mailroom_gaps h
  WHERE h.id = ANY ($3::bigint[]) AND (h.pending IS NULL OR EXISTS (
    SELECT FROM unnest(h.pending) x
    WHERE pg_visible_in_snapshot(x, pg_current_snapshot()) OR x >= pg_snapshot_xmax(pg_current_snapshot())))),
ranges AS (
  SELECT kind, lower(g) AS first, upper(g) AS last,
    sum(upper(g) - lower(g)) OVER (PARTITION BY kind ORDER BY lower(g) ROWS UNBOUNDED PRECEDING)
      - (upper(g) - lower(g)) AS before
  FROM sources, unnest(ids) g)
SELECT r.kind, sum(r.last - r.first)::bigint AS ids,
  sum(greatest(least(r.last - r.first, 5000 - r.before), 0))::bigint AS examined,
  coalesce(sum(found.due), 0)::bigint AS due, min(found.oldest) AS oldest_waiting
FROM ranges r
LEFT JOIN LATERAL (
  SELECT count(*) AS due, min(t.created_at) AS oldest
  FROM (
    SELECT id, action, account, expires_at, consumed_at, created_at FROM tokens
    WHERE id >= r.first AND id < least(r.last, r.first + 5000 - r.before::bigint)
    ORDER BY id
    LIMIT 5000) t
  LEFT JOIN accounts a ON a.id = t.account
  WHERE mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, $4::bigint) = 'due'
    AND (r.kind = 'batch' OR mailroom_takes(mailroom_queue_actions($1), t.action))) found
  ON r.before < 5000
GROUP BY r.kind)";

void note_oldest(PendingTokens& count, const db::Row& row) {
  if (const auto created_at = row.optional_moment<std::chrono::seconds>("oldest_waiting"))
    count.oldest_created_at = std::min(count.oldest_created_at.value_or(*created_at), *created_at);
}

/// Notes the life of tokens that wait, and those that have expired; each stands for `weight`.
void note_validity(PendingTokens& count, Moment now, double weight, const db::Row& row) {
  if (const auto life = row.optional<std::int64_t>("life"))
    count.waiting_by_life[(*life + 1) * life_step] += row.number<double>("waiting") * weight;
  const auto ended = row.optional_moment<std::chrono::seconds>("last_expired");
  if (!ended) return;
  count.expired.add(
      std::llround(row.number<double>("expired") * weight), std::chrono::floor<Milliseconds>(now - *ended),
      std::chrono::ceil<Milliseconds>(now - row.moment<std::chrono::seconds>("oldest_expired")));
}

template <typename Member>
std::string array_of(const std::vector<IdSample>& samples, Member member) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(samples.size());
  for (const auto& sample : samples)
    numbers.push_back(sample.*member);
  return db::array_text(numbers);
}

void add_samples(pqxx::transaction_base& transaction, const std::string& queue, const QueuePosition& position,
                 std::int64_t read_to, PendingTokens& count) {
  const auto samples = plan_samples(read_to + 1, position.newest);
  const auto rows =
      db::Connection::execute(transaction, samples_sql, array_of(samples, &IdSample::first),
                              array_of(samples, &IdSample::end), in_seconds(position.now), queue);
  double estimate = 0;
  for (const auto& row : rows) {
    const auto weight = samples.at(row.number<std::size_t>("n") - 1).weight;
    estimate += row.number<double>("waiting") * weight;
    note_oldest(count, row);
    note_validity(count, position.now, weight, row);
  }
  count.waiting += std::llround(estimate);
}

void count_above_cursor(pqxx::transaction_base& transaction, const std::string& queue,
                        const QueuePosition& position, PendingTokens& count) {
  std::int64_t examined = 0;
  std::int64_t read_to = 0;
  for (const auto& row : db::Connection::execute(transaction, above_cursor_sql, position.cursor,
                                                 position.newest, in_seconds(position.now), queue)) {
    examined += row.number("examined");
    count.waiting += row.number("waiting");
    note_oldest(count, row);
    read_to = std::max(read_to, row.number("last"));
    note_validity(count, position.now, 1, row);
  }
  if (examined <= exact_limit) return;
  if (read_to == position.newest) return;
  // Ids are drawn in time order, so the first due token found is about the oldest.
  count.oldest_estimated = !count.oldest_created_at;
  count.estimated = true;
  add_samples(transaction, queue, position, read_to, count);
}

void count_behind_cursor(pqxx::transaction_base& transaction, const std::string& queue,
                         const QueuePosition& position, PendingTokens& count) {
  const auto rows = db::Connection::execute(transaction, passed_sql, queue, position.open_from,
                                            position.gap_ids, in_seconds(position.now));
  for (const auto& row : rows) {
    const std::string kind = row.text("kind");
    const auto ids = row.number("ids");
    const auto examined = row.number("examined");
    auto due = row.number("due");
    if (examined < ids) {
      count.estimated = true;
      due = std::llround(static_cast<double>(due) * static_cast<double>(ids) / static_cast<double>(examined));
    }
    (kind == "batch" ? count.leased : kind == "gap" ? count.in_gap : count.in_replay) = due;
    note_oldest(count, row);
  }
}

}  // namespace

void ExpiredTokens::add(std::int64_t more, Milliseconds ago, std::optional<Milliseconds> created) {
  if (more == 0) return;
  if (created) oldest = std::max(oldest.value_or(*created), *created);
  tokens += more;
  last = std::max(std::min(last.value_or(ago), ago), Milliseconds{0});
}

std::vector<IdSample> plan_samples(std::int64_t first, std::int64_t last) {
  std::vector<IdSample> samples;
  auto size = whole_size;
  for (auto end = last + 1; end > first; size *= 2) {
    const auto start = end - std::min(end - first, size);
    // The newest are read in whole; of older ones a slice in the middle stands for each part.
    const auto slice = end > last ? end - start : std::min(end - start, slice_size);
    const auto from = start + (end - start - slice) / 2;
    samples.push_back({.first = from,
                       .end = from + slice,
                       .weight = static_cast<double>(end - start) / static_cast<double>(slice)});
    end = start;
  }
  return samples;
}

PendingTokens count_pending_tokens(pqxx::transaction_base& transaction, const std::string& queue,
                                   const QueuePosition& position) {
  PendingTokens count;
  count_above_cursor(transaction, queue, position, count);
  count_behind_cursor(transaction, queue, position, count);
  return count;
}

Milliseconds ScheduledMessages::overdue(Moment now) const {
  if (!next_at) return {};
  return std::max(std::chrono::floor<Milliseconds>(now - *next_at), Milliseconds{0});
}

// More than some thousand are estimated by the statistics of the server.
ScheduledMessages read_scheduled_messages(pqxx::transaction_base& transaction) {
  constexpr std::int64_t counted_limit = 10'000;
  const auto allowed =
      db::Connection::execute(transaction, "SELECT has_table_privilege('mailroom_schedule', 'SELECT')");
  if (!allowed.value<bool>()) return {.is_known = false};
  const auto row = db::Connection::execute(transaction, R"(
SELECT (SELECT count(*) FROM (SELECT FROM mailroom_schedule ORDER BY send_after LIMIT $1::bigint + 1) s) AS counted,
  (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'mailroom_schedule'::regclass) AS estimated,
  (SELECT floor(extract(epoch FROM send_after) * 1000)::bigint FROM mailroom_schedule ORDER BY send_after LIMIT 1) AS next_ms)",
                                           counted_limit)[0];
  ScheduledMessages scheduled{.messages = row.number("counted"),
                              .next_at = row.optional_moment<Milliseconds>("next_ms")};
  scheduled.estimated = scheduled.messages > counted_limit;
  if (scheduled.estimated) scheduled.messages = std::max(scheduled.messages, row.number("estimated"));
  return scheduled;
}

}  // namespace mailroom::status
