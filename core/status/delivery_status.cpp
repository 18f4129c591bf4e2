// Reads mailroom_deliveries, mailroom_bounces and mailroom_sinks.

#include "status/delivery_status.hpp"

#include <algorithm>

#include "db/values.hpp"

namespace mailroom::status {
namespace {

// The index on last_at is a BRIN index, which only bitmap scans use.
constexpr const char* states_sql = R"(
SELECT state, count(*), count(*) FILTER (WHERE accepted_at IS NULL) AS unaccepted,
  count(*) FILTER (WHERE unknowns + (accepted_at IS NOT NULL)::integer > 1) AS perhaps_twice,
  (extract(epoch FROM clock_timestamp() - max(last_at) FILTER (WHERE accepted_at IS NULL)) * 1000)::bigint AS ago_ms,
  (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - t.created_at * 1000 FROM tokens t
   WHERE t.id = min(d.token)) AS oldest_ms
FROM mailroom_deliveries d
WHERE queue = $1 AND last_at > clock_timestamp() - interval '1 hour'
GROUP BY state ORDER BY count(*) DESC, state)";

constexpr const char* refused_sql = R"(
WITH success AS (
  SELECT max(last_at) AS at FROM mailroom_deliveries
  WHERE queue = $1 AND state = 'accepted' AND last_at > clock_timestamp() - interval '1 hour'
)
SELECT count(*), (extract(epoch FROM clock_timestamp() - GREATEST(min(first_at), min(success.at))) * 1000)::bigint AS lasts_ms,
  (array_agg(concat_ws(' ', nullif(code, 0), nullif(reply, '')) ORDER BY last_at DESC, token DESC))[1] AS last,
  count(*) FILTER (WHERE state = 'deferred') AS deferred,
  (SELECT (extract(epoch FROM clock_timestamp() - at) * 1000)::bigint FROM success) AS accepted_ms
FROM mailroom_deliveries, success
WHERE queue = $1 AND state IN ('rejected', 'deferred') AND attempts > 0
  AND last_at > GREATEST(clock_timestamp() - interval '1 hour', success.at))";

// Without a sink no relay was asked: the mail could not be made. Several with the same words have one cause.
constexpr const char* unmade_sql = R"(
SELECT count(*), (extract(epoch FROM clock_timestamp() - max(last_at)) * 1000)::bigint AS last_ms, reply
FROM mailroom_deliveries
WHERE queue = $1 AND state = 'rejected' AND sink IS NULL AND reply IS NOT NULL
  AND last_at > clock_timestamp() - interval '1 hour' AND reply NOT LIKE 'its batch was dead-lettered %'
GROUP BY reply ORDER BY 1 DESC, reply LIMIT 1)";

// Of which mails the receiver refuses many, while it takes others.
constexpr const char* rejected_actions_sql = R"(
SELECT count(*) AS rejected, (SELECT string_agg(n.count || ' of ' || n.action, ', ' ORDER BY n.count DESC, n.action) FROM (
    SELECT replace(t.action::text, 'password_recovery', 'recovery') AS action, count(*) FROM tokens t
    WHERE t.id = ANY (array_agg(d.token)) GROUP BY 1) n) AS actions,
  (array_agg(concat_ws(' ', nullif(d.code, 0), nullif(d.reply, '')) ORDER BY d.last_at DESC, d.token DESC))[1] AS last
FROM (SELECT token, code, reply, last_at FROM mailroom_deliveries
      WHERE queue = $1 AND state = 'rejected' AND accepted_at IS NULL AND sink IS NOT NULL
        AND last_at > clock_timestamp() - interval '1 hour' LIMIT 10000) d)";

// Reads the newest batches back to the last one with an emitted token, which usually is the newest.
constexpr const char* unfit_sql = R"(
WITH last AS MATERIALIZED (
  SELECT id FROM (SELECT id, emitted FROM mailroom_batches WHERE queue = $1 ORDER BY id DESC LIMIT 10000) b
  WHERE emitted > 0 LIMIT 1)
SELECT coalesce(sum(skipped_status), 0) AS tokens,
  (extract(epoch FROM clock_timestamp() - min(claimed_at)) * 1000)::bigint AS lasts_ms
FROM (SELECT skipped_status, claimed_at FROM mailroom_batches
      WHERE queue = $1 AND id > coalesce((SELECT id FROM last), 0) ORDER BY id DESC LIMIT 10000) b
WHERE skipped_status > 0 AND claimed_at > clock_timestamp() - interval '1 hour')";

// Ids are drawn in time order: the oldest token is among the lowest ids.
constexpr const char* deferred_sql = R"(
WITH waiting AS MATERIALIZED (
  SELECT token, not_before, sink IS NULL AND code IS NULL AND reply IS NOT NULL AS is_withheld, reply
  FROM mailroom_deliveries WHERE queue = $1 AND not_before IS NOT NULL)
SELECT count(*), (extract(epoch FROM min(not_before) - clock_timestamp()) * 1000)::bigint AS next_ms,
  (SELECT min(t.created_at) FROM (SELECT token FROM waiting ORDER BY token LIMIT 5000) w JOIN tokens t ON t.id = w.token
   WHERE mailroom_is_live(t.consumed_at, t.expires_at, extract(epoch FROM clock_timestamp())::bigint)) AS oldest_created_at,
  count(*) FILTER (WHERE is_withheld) AS withheld,
  (array_agg(reply ORDER BY token DESC) FILTER (WHERE is_withheld))[1] AS withheld_for
FROM waiting)";

// A consumer tries an unavailable sink every five minutes at least, while something waits for it: one that
// nobody tries any more is not configured any more.
constexpr const char* sinks_sql = R"(
SELECT name, failures, (extract(epoch FROM clock_timestamp() - since) * 1000)::bigint AS lasts_ms,
  (extract(epoch FROM probe_at - clock_timestamp()) * 1000)::bigint AS probe_ms, reason
FROM mailroom_sinks WHERE failures > 0 AND probe_at > clock_timestamp() - interval '10 minutes' ORDER BY since, name)";

// What DomainLimits and RefusalMemory have told; in minutes since 1970.
constexpr const char* parts_sql = R"(
WITH minute AS (SELECT floor(extract(epoch FROM clock_timestamp()) / 60)::bigint AS now)
SELECT s.name, 'to ' || (d->>'domain') AS part, (now - (d->>'since')::bigint) * 60000 AS lasts_ms,
  (d->>'rate')::float8 AS rate, d->>'why' AS why
FROM mailroom_sinks s, json_array_elements(s.learnt->'domains') d, minute WHERE (d->>'last')::bigint > now - 10
UNION ALL
SELECT s.name, r->>'key', (now - (r->>'since')::bigint) * 60000, 0, r->>'why'
FROM mailroom_sinks s, json_array_elements(s.learnt->'refusals') r, minute
WHERE r->>'key' LIKE 'from %' AND (r->>'some_until')::bigint > now ORDER BY 1, 2)";

constexpr const char* reports_sql = R"(
SELECT count(DISTINCT token) FILTER (WHERE queue = $1 AND kind = 'hard') AS hard,
  count(DISTINCT token) FILTER (WHERE queue = $1 AND kind IN ('soft', 'undetermined')) AS bounced,
  count(DISTINCT token) FILTER (WHERE queue = $1 AND kind = 'complaint') AS complaints,
  count(DISTINCT token) FILTER (WHERE queue = $1 AND kind = 'unsubscribed') AS unsubscribed,
  count(DISTINCT token) FILTER (WHERE queue = $1 AND kind = 'delivered') AS delivered,
  count(*) FILTER (WHERE token IS NULL) AS unmatched
FROM mailroom_bounces WHERE at > clock_timestamp() - interval '1 hour')";

/// Not negative.
Milliseconds duration_of(const db::Row& row, db::ColumnName name) {
  return Milliseconds(std::max<std::int64_t>(row.number(name), 0));
}

std::optional<Milliseconds> optional_duration_of(const db::Row& row, db::ColumnName name) {
  return row.is_null(name) ? std::nullopt : std::optional(duration_of(row, name));
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
  deferred.tokens = row.number("count");
  if (!row.is_null("next_ms")) deferred.next_in = duration_of(row, "next_ms");
  deferred.oldest_created_at = row.optional_moment<std::chrono::seconds>("oldest_created_at");
  deferred.withheld = row.number("withheld");
  deferred.withheld_for = row.text("withheld_for");
  return deferred;
}

DeliveryStatus read_delivery_status(pqxx::transaction_base& transaction, const std::string& queue) {
  DeliveryStatus status;
  db::Connection::execute(transaction, "SET LOCAL enable_bitmapscan = on");
  for (const auto& row : db::Connection::execute(transaction, states_sql, queue)) {
    const auto outcome = fate::find_outcome(row.text("state")).value_or(fate::Outcome::unknown);
    status.last_hour.emplace_back(outcome, row.number("count"));
    status.perhaps_twice += row.number("perhaps_twice");
    if (outcome == fate::Outcome::expired && !row.is_null("ago_ms"))
      status.expired.add(row.number("unaccepted"), duration_of(row, "ago_ms"),
                         optional_duration_of(row, "oldest_ms"));
  }
  const auto refused = db::Connection::execute(transaction, refused_sql, queue)[0];
  const auto unmade = db::Connection::execute(transaction, unmade_sql, queue);
  if (!unmade.empty())
    status.unmade = {.tokens = unmade[0].number("count"),
                     .last = duration_of(unmade[0], "last_ms"),
                     .why = unmade[0].text("reply")};
  const auto rejected = db::Connection::execute(transaction, rejected_actions_sql, queue)[0];
  status.rejected = {.mails = rejected.number("rejected"),
                     .actions = rejected.text("actions"),
                     .last = rejected.text("last")};
  db::Connection::execute(transaction, "SET LOCAL enable_bitmapscan = off");
  const auto unfit = db::Connection::execute(transaction, unfit_sql, queue)[0];
  status.unfit.tokens = unfit.number("tokens");
  if (!unfit.is_null("lasts_ms")) status.unfit.lasts = duration_of(unfit, "lasts_ms");
  status.refused.tokens = refused.number("count");
  if (!refused.is_null("lasts_ms")) status.refused.lasts = duration_of(refused, "lasts_ms");
  status.refused.last = refused.text("last");
  status.refused.deferred = refused.number("deferred");
  if (!refused.is_null("accepted_ms")) status.last_accepted = duration_of(refused, "accepted_ms");
  status.deferred = read_deferred_tokens(transaction, queue);
  status.sinks = read_unavailable_sinks(transaction);
  for (const auto& row : db::Connection::execute(transaction, parts_sql)) {
    status.refused_parts.push_back({.sink = row.text("name"),
                                    .of = row.text("part"),
                                    .lasts = duration_of(row, "lasts_ms"),
                                    .rate = row.number<double>("rate"),
                                    .why = row.text("why")});
  }
  return status;
}

std::vector<UnavailableSink> read_unavailable_sinks(pqxx::transaction_base& transaction) {
  std::vector<UnavailableSink> sinks;
  for (const auto& row : db::Connection::execute(transaction, sinks_sql)) {
    sinks.push_back({.name = row.text("name"),
                     .failures = row.number<int>("failures"),
                     .lasts = duration_of(row, "lasts_ms"),
                     .probe_in = duration_of(row, "probe_ms"),
                     .reason = row.text("reason")});
  }
  return sinks;
}

CameBack read_came_back(pqxx::transaction_base& transaction, const std::string& queue) {
  const auto allowed = db::Connection::execute(transaction, R"(
SELECT bool_and(has_column_privilege('mailroom_bounces', c, 'SELECT')) AND NOT row_security_active('mailroom_bounces') FROM unnest(ARRAY['at', 'queue', 'token', 'kind']) c)");
  if (!allowed.value<bool>()) return {.is_known = false};
  const auto row = db::Connection::execute(transaction, reports_sql, queue)[0];
  return {.hard = row.number("hard"),
          .bounced = row.number("bounced"),
          .complaints = row.number("complaints"),
          .unsubscribed = row.number("unsubscribed"),
          .delivered = row.number("delivered"),
          .unmatched = row.number("unmatched")};
}

}  // namespace mailroom::status
