// Reads mailroom_deliveries, mailroom_bounces and mailroom_sinks.

#include "status/delivery_status.hpp"

#include <algorithm>

#include "db/values.hpp"

namespace mailroom::status {
namespace {

// The index on last_at is a BRIN index, which only bitmap scans use.
constexpr const char* states_sql = R"(
SELECT state, count(*), count(*) FILTER (WHERE accepted_at IS NULL),
  (extract(epoch FROM clock_timestamp() - max(last_at) FILTER (WHERE accepted_at IS NULL)) * 1000)::bigint,
  (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - t.created_at * 1000 FROM tokens t WHERE t.id = min(d.token))
FROM mailroom_deliveries d
WHERE queue = $1 AND last_at > clock_timestamp() - interval '1 hour'
GROUP BY state ORDER BY count(*) DESC, state)";

constexpr const char* refused_sql = R"(
WITH success AS (
  SELECT max(last_at) AS at FROM mailroom_deliveries
  WHERE queue = $1 AND state = 'accepted' AND last_at > clock_timestamp() - interval '1 hour'
)
SELECT count(*), (extract(epoch FROM clock_timestamp() - GREATEST(min(first_at), min(success.at))) * 1000)::bigint,
  (array_agg(concat_ws(' ', nullif(code, 0), nullif(reply, '')) ORDER BY last_at DESC, token DESC))[1],
  count(*) FILTER (WHERE state = 'deferred'),
  (SELECT (extract(epoch FROM clock_timestamp() - at) * 1000)::bigint FROM success)
FROM mailroom_deliveries, success
WHERE queue = $1 AND state IN ('rejected', 'deferred') AND attempts > 0
  AND last_at > GREATEST(clock_timestamp() - interval '1 hour', success.at))";

// Without a sink no relay was asked: the mail could not be made. Several with the same words have one cause.
constexpr const char* unmade_sql = R"(
SELECT count(*), (extract(epoch FROM clock_timestamp() - max(last_at)) * 1000)::bigint, reply
FROM mailroom_deliveries
WHERE queue = $1 AND state = 'rejected' AND sink IS NULL AND reply IS NOT NULL
  AND last_at > clock_timestamp() - interval '1 hour'
GROUP BY reply HAVING count(*) >= 3 ORDER BY 1 DESC, reply LIMIT 1)";

// Reads the newest batches back to the last one with an emitted token, which usually is the newest.
constexpr const char* unfit_sql = R"(
WITH last AS MATERIALIZED (
  SELECT id FROM (SELECT id, emitted FROM mailroom_batches WHERE queue = $1 ORDER BY id DESC LIMIT 10000) b
  WHERE emitted > 0 LIMIT 1)
SELECT coalesce(sum(skipped_status), 0), (extract(epoch FROM clock_timestamp() - min(claimed_at)) * 1000)::bigint
FROM (SELECT skipped_status, claimed_at FROM mailroom_batches
      WHERE queue = $1 AND id > coalesce((SELECT id FROM last), 0) ORDER BY id DESC LIMIT 10000) b
WHERE skipped_status > 0 AND claimed_at > clock_timestamp() - interval '1 hour')";

// Ids are drawn in time order: the oldest token is among the lowest ids.
constexpr const char* deferred_sql = R"(
WITH waiting AS MATERIALIZED (
  SELECT token, not_before, sink IS NULL AND code IS NULL AND reply IS NOT NULL AS is_withheld, reply
  FROM mailroom_deliveries WHERE queue = $1 AND not_before IS NOT NULL)
SELECT count(*), (extract(epoch FROM min(not_before) - clock_timestamp()) * 1000)::bigint,
  (SELECT min(t.created_at) FROM (SELECT token FROM waiting ORDER BY token LIMIT 5000) w JOIN tokens t ON t.id = w.token
   WHERE mailroom_is_live(t.consumed_at, t.expires_at, extract(epoch FROM clock_timestamp())::bigint)),
  count(*) FILTER (WHERE is_withheld), (array_agg(reply ORDER BY token DESC) FILTER (WHERE is_withheld))[1]
FROM waiting)";

// A consumer tries an unavailable sink every five minutes at least, while something waits for it: one that
// nobody tries any more is not configured any more.
constexpr const char* sinks_sql = R"(
SELECT name, failures, (extract(epoch FROM clock_timestamp() - since) * 1000)::bigint,
  (extract(epoch FROM probe_at - clock_timestamp()) * 1000)::bigint, reason
FROM mailroom_sinks WHERE probe_at > clock_timestamp() - interval '10 minutes' ORDER BY since, name)";

constexpr const char* reports_sql = R"(
SELECT count(DISTINCT token) FILTER (WHERE queue = $1 AND kind = 'hard'),
  count(DISTINCT token) FILTER (WHERE queue = $1 AND kind IN ('soft', 'undetermined')),
  count(DISTINCT token) FILTER (WHERE queue = $1 AND kind = 'complaint'),
  count(DISTINCT token) FILTER (WHERE queue = $1 AND kind = 'delivered'),
  count(*) FILTER (WHERE token IS NULL)
FROM mailroom_bounces WHERE at > clock_timestamp() - interval '1 hour')";

/// Not negative.
template <typename Field>
Milliseconds duration_of(const Field& field) {
  return Milliseconds(std::max<std::int64_t>(field.template as<std::int64_t>(), 0));
}

}  // namespace

std::int64_t DeliveryStatus::count_last_hour(fate::Outcome outcome) const {
  const auto found =
      std::ranges::find(last_hour, outcome, [](const auto& of_outcome) { return of_outcome.first; });
  return found == last_hour.end() ? 0 : found->second;
}

DeferredTokens read_deferred_tokens(pqxx::transaction_base& transaction, const std::string& queue) {
  const auto row = db::Connection::execute(transaction, deferred_sql, queue)[0];
  DeferredTokens deferred;
  deferred.tokens = row[0].as<std::int64_t>();
  if (!row[1].is_null()) deferred.next_in = duration_of(row[1]);
  deferred.oldest_created_at = db::optional_moment_in<std::chrono::seconds>(row[2]);
  deferred.withheld = row[3].as<std::int64_t>();
  if (!row[4].is_null()) deferred.withheld_for = row[4].c_str();
  return deferred;
}

DeliveryStatus read_delivery_status(pqxx::transaction_base& transaction, const std::string& queue) {
  DeliveryStatus status;
  db::Connection::execute(transaction, "SET LOCAL enable_bitmapscan = on");
  for (const auto& row : db::Connection::execute(transaction, states_sql, queue)) {
    const auto outcome = fate::find_outcome(row[0].c_str()).value_or(fate::Outcome::unknown);
    status.last_hour.emplace_back(outcome, row[1].as<std::int64_t>());
    if (outcome == fate::Outcome::expired && !row[3].is_null())
      status.expired.add(row[2].as<std::int64_t>(), duration_of(row[3]),
                         row[4].is_null() ? std::nullopt : std::optional(duration_of(row[4])));
  }
  const auto refused = db::Connection::execute(transaction, refused_sql, queue)[0];
  const auto unmade = db::Connection::execute(transaction, unmade_sql, queue);
  if (!unmade.empty())
    status.unmade = {.tokens = unmade[0][0].as<std::int64_t>(),
                     .last = duration_of(unmade[0][1]),
                     .why = unmade[0][2].c_str()};
  db::Connection::execute(transaction, "SET LOCAL enable_bitmapscan = off");
  const auto unfit = db::Connection::execute(transaction, unfit_sql, queue)[0];
  status.unfit.tokens = unfit[0].as<std::int64_t>();
  if (!unfit[1].is_null()) status.unfit.lasts = duration_of(unfit[1]);
  status.refused.tokens = refused[0].as<std::int64_t>();
  if (!refused[1].is_null()) status.refused.lasts = duration_of(refused[1]);
  if (!refused[2].is_null()) status.refused.last = refused[2].c_str();
  status.refused.deferred = refused[3].as<std::int64_t>();
  if (!refused[4].is_null()) status.last_accepted = duration_of(refused[4]);
  status.deferred = read_deferred_tokens(transaction, queue);
  status.sinks = read_unavailable_sinks(transaction);
  return status;
}

std::vector<UnavailableSink> read_unavailable_sinks(pqxx::transaction_base& transaction) {
  std::vector<UnavailableSink> sinks;
  for (const auto& row : db::Connection::execute(transaction, sinks_sql)) {
    sinks.push_back({.name = row[0].c_str(),
                     .failures = row[1].as<int>(),
                     .lasts = duration_of(row[2]),
                     .probe_in = duration_of(row[3]),
                     .reason = row[4].c_str()});
  }
  return sinks;
}

CameBack read_came_back(pqxx::transaction_base& transaction, const std::string& queue) {
  const auto allowed = db::Connection::execute(transaction, R"(
SELECT bool_and(has_column_privilege('mailroom_bounces', c, 'SELECT')) AND NOT row_security_active('mailroom_bounces') FROM unnest(ARRAY['at', 'queue', 'token', 'kind']) c)");
  if (!allowed[0][0].as<bool>()) return {.is_known = false};
  const auto row = db::Connection::execute(transaction, reports_sql, queue)[0];
  return {.hard = row[0].as<std::int64_t>(),
          .bounced = row[1].as<std::int64_t>(),
          .complaints = row[2].as<std::int64_t>(),
          .delivered = row[3].as<std::int64_t>(),
          .unmatched = row[4].as<std::int64_t>()};
}

}  // namespace mailroom::status
