// One statement reads all that is taken from the newest batches, of which it reads a bounded number.

#include "status/recent_batches.hpp"

#include <algorithm>
#include <numeric>

#include "db/values.hpp"
#include "selection/selection.hpp"
#include "status/queue_status.hpp"
#include "status/unsettled.hpp"

namespace mailroom::status {
namespace {

// $1 queue, $2 now in milliseconds. No index finds dead letters, so this reads a bounded number of recent
// rows.
constexpr const char* recent_sql = R"(
WITH recent AS MATERIALIZED (
  SELECT id, claimed_by, claimed_at, emitted_at, dead_at, emitted, skipped_expired, cursor, resent, key FROM mailroom_batches
  WHERE queue = $1
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
SELECT 'known' AS kind, 0 AS number,
  CASE WHEN count(*) < 5000 THEN 300000
       ELSE least(300000, greatest(1, extract(epoch FROM min(clock.now) - min(claimed_at)) * 1000))::bigint END AS value,
  coalesce(max(cursor), 0) AS more, '' AS word
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
  WHERE queue = $1
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
         selection::signed_last_sql("$1", "(ARRAY[$2::text])");
}

/// Counts what people have of the keys that no connected consumer signs with.
void count_links(pqxx::transaction_base& transaction, QueueStatus& status) {
  const auto is_of_consumer = [&](const RecentKey& key) {
    return std::ranges::any_of(status.collectors,
                               [&](const auto& collector) { return collector.key == key.fingerprint; });
  };
  for (auto& key : status.recent_keys) {
    if (is_of_consumer(key)) continue;
    key.tokens = db::Connection::execute(transaction, links_of_key_sql(), status.queue, key.fingerprint)
                     .value<std::int64_t>();
  }
  std::erase_if(status.recent_keys, [](const RecentKey& key) { return key.tokens == 0; });
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

std::int64_t read_recent_batches(pqxx::transaction_base& transaction, QueueStatus& status) {
  std::int64_t highest = 0;
  const auto now = std::chrono::floor<Milliseconds>(status.now.time_since_epoch()).count();
  for (const auto& row : db::Connection::execute(transaction, recent_sql, status.queue, now)) {
    const std::string kind = row.text("kind");
    const auto number = row.number("number");
    const auto value = row.number("value");
    if (kind == "known") {
      status.emissions.known = Milliseconds{value};
      highest = row.number("more");
    } else if (kind == "expired") {
      status.expired.add(number, Milliseconds{value}, Milliseconds{row.number("more")});
    } else if (kind == "emitted") {
      status.emissions.tokens.at(
          std::min(static_cast<std::size_t>(number), RecentEmissions::bucket_count - 1)) += value;
    } else if (kind == "key") {
      status.recent_keys.push_back(
          {row.text("word"), number, Milliseconds{std::max<std::int64_t>(value, 0)}});
    } else if (kind == "last claim") {
      status.last_claim =
          LastClaim{.claimed_by = row.text("word"), .age = Milliseconds{std::max<std::int64_t>(value, 0)}};
    } else {
      status.dead.push_back({.id = number,
                             .claimed_by = row.text("word"),
                             .age = Milliseconds{std::max<std::int64_t>(value, 0)}});
    }
  }
  keep_unsettled(transaction, status.dead);
  count_links(transaction, status);
  return highest;
}

}  // namespace mailroom::status
