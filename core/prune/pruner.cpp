// The SQL of the steps, and its rounds of tokens, batches and deliveries.

#include "prune/pruner.hpp"

#include <algorithm>

#include "base/duration.hpp"

namespace mailroom {
namespace {

// Forces scans of ordered indexes, whatever the statistics say.
constexpr const char* session_sql = R"(
SET row_security = off;
SET plan_cache_mode = force_generic_plan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off)";

// The maximum number of rows that one statement reads, so that it stays short where few rows are old.
constexpr int window = 20'000;

// The state of each queue: as mailroom_queue_state(), but in the snapshot of the whole statement.
constexpr const char* queues_sql = R"(
WITH queue AS MATERIALIZED (
  SELECT j.job_type AS name, coalesce(b.cursor, j.last_seq, 0) AS cursor,
    coalesce(b.open_from, 1) AS open_from, coalesce(b.gap_ids, '{}') AS gap_ids
  FROM jobs j
  LEFT JOIN LATERAL (
    SELECT * FROM mailroom_batches WHERE job_type = j.job_type ORDER BY id DESC LIMIT 1) b ON true))";

// All steps: $1 and $2 bound the ids (after $1, up to $2), $3 the last token, $4 the time limit, $5 rows to
// read, $6 rows to remove. Multiranges are unnested because PostgreSQL 14 cannot aggregate them.
constexpr const char* held_sql = R"(,
bound AS MATERIALIZED (SELECT least(min(cursor), $3::bigint) AS id FROM queue),
held AS MATERIALIZED (
  SELECT coalesce(range_agg(x.g), '{}') AS ids
  FROM (
    SELECT unnest(h.ids) FROM queue q JOIN mailroom_gaps h ON h.id = ANY (q.gap_ids)
    UNION ALL
    SELECT unnest(mailroom_batch_ids(b.ids, b.ids_mask))
    FROM queue q JOIN mailroom_batches b ON b.job_type = q.name AND b.id >= q.open_from
      AND b.emitted_at IS NULL AND b.dead_at IS NULL) x (g)))";

// For the token t.
constexpr const char* token_is_old_sql = R"((
    coalesce(t.consumed_at, t.expires_at) < $4::bigint
    AND t.id <= (SELECT id FROM bound)
    AND NOT (SELECT ids FROM held) @> t.id))";

constexpr const char* looked_tokens_sql = R"( AS is_old, t.created_at >= $4::bigint AS is_new
  FROM tokens t
  WHERE t.id > $1::bigint AND t.id <= $2::bigint
  ORDER BY t.id
  LIMIT $5::int),
old AS MATERIALIZED (SELECT id FROM looked WHERE is_old LIMIT $6::int))";

constexpr const char* remove_tokens_sql = R"(,
locked AS MATERIALIZED (
  SELECT t.id FROM old o JOIN tokens t ON t.id = o.id
  WHERE coalesce(t.consumed_at, t.expires_at) < $4::bigint
  FOR UPDATE OF t SKIP LOCKED),
gone AS (DELETE FROM tokens t USING locked l WHERE t.id = l.id RETURNING t.id))";

// $7: whether old tokens count as removed.
constexpr const char* looked_batches_sql = R"(,
looked AS MATERIALIZED (
  SELECT b.id, b.job_type, mailroom_batch_ids(b.ids, b.ids_mask) AS ids, greatest(b.emitted_at, b.dead_at) < to_timestamp($4::bigint) AS is_old,
    b.claimed_at >= to_timestamp($4::bigint) AS is_new
  FROM mailroom_batches b
  WHERE b.id > $1::bigint AND b.id <= $2::bigint
  ORDER BY b.id
  LIMIT $5::int),
old AS MATERIALIZED (
  SELECT l.id FROM looked l
  WHERE l.is_old
    AND (EXISTS (SELECT FROM mailroom_batches n WHERE n.job_type = l.job_type AND n.id > l.id)
         OR NOT EXISTS (SELECT FROM queue q WHERE q.name = l.job_type))
    AND NOT EXISTS (
      SELECT FROM unnest(l.ids) u (g), LATERAL (
        SELECT FROM tokens t
        WHERE t.id >= lower(u.g) AND t.id < upper(u.g) AND NOT ($7::boolean AND )";

constexpr const char* remove_batches_sql = R"(,
locked AS MATERIALIZED (
  SELECT b.id FROM old o JOIN mailroom_batches b ON b.id = o.id
  WHERE greatest(b.emitted_at, b.dead_at) < to_timestamp($4::bigint)
  FOR UPDATE OF b SKIP LOCKED),
gone AS (DELETE FROM mailroom_batches b USING locked l WHERE b.id = l.id RETURNING b.id))";

// $7: whether old tokens count as removed; $8: the queue.
constexpr const char* looked_deliveries_sql = R"(,
looked AS MATERIALIZED (
  SELECT d.token AS id, d.not_before IS NULL AND d.last_at < to_timestamp($4::bigint) AND NOT EXISTS (
      SELECT FROM tokens t WHERE t.id = d.token AND NOT ($7::boolean AND )";

constexpr const char* remove_deliveries_sql = R"(,
locked AS MATERIALIZED (
  SELECT d.token AS id FROM old o JOIN mailroom_deliveries d ON d.queue = $8 AND d.token = o.id
  WHERE d.not_before IS NULL AND d.last_at < to_timestamp($4::bigint)
  FOR UPDATE OF d SKIP LOCKED),
gone AS (DELETE FROM mailroom_deliveries d USING locked l WHERE d.queue = $8 AND d.token = l.id RETURNING d.token))";

// Evaluates `looked` only if fewer than $6 rows were old, because only then `old` has read all of it. Null at
// the end: also after as many rows as are read at a time, all of which came within the time that is kept.
// Rows above them are hardly older, and become old no later than these.
std::string outcome_sql(const std::string& removed) {
  return R"(
SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM )" +
         removed + R"(),
  CASE WHEN (SELECT count(*) FROM old) = $6::int THEN (SELECT max(id) FROM old)
       ELSE (SELECT CASE WHEN count(*) < $5::int OR NOT bool_and(is_new) THEN max(id) END FROM looked) END)";
}

std::string old_tokens_sql() {
  return std::string(queues_sql) + held_sql + R"(,
looked AS MATERIALIZED (
  SELECT t.id, )" +
         token_is_old_sql + looked_tokens_sql;
}

std::string old_batches_sql() {
  return std::string(queues_sql) + held_sql + looked_batches_sql + token_is_old_sql + R"()
        LIMIT 1) t)
  LIMIT $6::int))";
}

std::string old_deliveries_sql() {
  return std::string(queues_sql) + held_sql + looked_deliveries_sql + token_is_old_sql + R"()) AS is_old,
    d.last_at >= to_timestamp($4::bigint) AS is_new
  FROM mailroom_deliveries d
  WHERE d.queue = $8 AND d.token > $1::bigint AND d.token <= $2::bigint
  ORDER BY d.token
  LIMIT $5::int),
old AS MATERIALIZED (SELECT id FROM looked WHERE is_old LIMIT $6::int))";
}

/// Ids from `first` to `last`; empty if `last` is less than `first`.
struct IdSpan {
  std::int64_t first = 1;
  std::int64_t last = 0;

  std::int64_t size() const { return last < first ? 0 : last - first + 1; }
};

/// The server's time `older_than` ago.
Moment moment_before(Connection& connection, Milliseconds older_than) {
  return connection.server_time() - std::chrono::ceil<std::chrono::seconds>(older_than);
}

std::optional<HeldBack> find_held_back(Connection& connection, Moment before) {
  const auto rows = connection.run(std::string(queues_sql) + R"(
SELECT q.name, q.cursor
FROM (SELECT * FROM queue ORDER BY cursor LIMIT 1) q
WHERE EXISTS (
  SELECT FROM (
    SELECT coalesce(t.consumed_at, t.expires_at) AS ended FROM tokens t
    WHERE t.id > q.cursor
    ORDER BY t.id
    LIMIT 10000) n
  WHERE n.ended < $1::bigint))",
                                   in_seconds(before));
  if (rows.empty()) return std::nullopt;
  return HeldBack{.queue = rows[0][0].c_str(), .cursor = rows[0][1].as<std::int64_t>()};
}

/// One pass over the tokens, one over the batches, and one over the deliveries of each queue. Each step is
/// one statement in a transaction of its own, so it sees a queue's cursor, gaps and open batches in one
/// snapshot. It needs no queue lock: old tokens are never due, so a concurrent claim, rewind or replay only
/// has fewer tokens to skip. A step does not wait for locked rows, and checks rows again that changed since
/// the snapshot.
///
/// A step reads rows in id order until it has found `step` old rows or has read 20,000, and ends the pass
/// over the table if all of these came within the time that is kept. It removes:
/// - tokens that are old, not above a cursor, and in no gap and no open batch;
/// - batches that are old, not the newest of a queue that still exists, and have no token left (would have
/// none, in a dry
///   run), so that every remaining token keeps the record of its emission;
/// - deliveries that are old, do not wait for another attempt, and whose token is gone (would be).
class Pass {
 public:
  Pass(Connection& connection, int step, const PruneObserver& go_on, PruneSummary& summary)
      : connection_(connection), step_(step), go_on_(go_on), summary_(summary) {}

  void run() {
    const auto row = connection_.run(std::string(queues_sql) + R"(
SELECT coalesce((SELECT min(id) FROM tokens), 1),
  coalesce(least((SELECT max(id) FROM tokens), (SELECT min(cursor) FROM queue)), 0),
  coalesce((SELECT min(id) FROM mailroom_batches), 1),
  coalesce((SELECT max(id) FROM mailroom_batches), 0))")[0];
    const IdSpan tokens{row[0].as<std::int64_t>(), row[1].as<std::int64_t>()};
    const IdSpan batches{row[2].as<std::int64_t>(), row[3].as<std::int64_t>()};
    const auto deliveries = delivery_spans();
    all_ids_ = tokens.size() + batches.size();
    for (const auto& [queue, span] : deliveries)
      all_ids_ += span.size();
    summary_.held_back = find_held_back(connection_, summary_.before);
    const auto before = in_seconds(summary_.before);
    const bool dry_run = summary_.dry_run;
    const auto rows_to_read = std::max(window, step_);
    walk(tokens, summary_.tokens, [&](std::int64_t after) {
      return connection_.run_prepared(dry_run ? "count_tokens" : "remove_tokens", after, tokens.last,
                                      tokens.last, before, rows_to_read, step_);
    });
    walk(batches, summary_.batches, [&](std::int64_t after) {
      return connection_.run_prepared(dry_run ? "count_batches" : "remove_batches", after, batches.last,
                                      tokens.last, before, rows_to_read, step_, dry_run);
    });
    for (const auto& [queue, span] : deliveries) {
      walk(span, summary_.deliveries, [&, name = queue, last = span.last](std::int64_t after) {
        return connection_.run_prepared(dry_run ? "count_deliveries" : "remove_deliveries", after, last,
                                        tokens.last, before, rows_to_read, step_, dry_run, name);
      });
    }
  }

 private:
  /// The tokens between the first and the last delivery of each queue, also of those that were dropped.
  std::vector<std::pair<std::string, IdSpan>> delivery_spans() {
    std::vector<std::pair<std::string, IdSpan>> spans;
    for (const auto& row : connection_.run(R"(
SELECT q.name, (SELECT min(token) FROM mailroom_deliveries WHERE queue = q.name),
  (SELECT max(token) FROM mailroom_deliveries WHERE queue = q.name)
FROM (SELECT job_type FROM jobs UNION SELECT name FROM mailroom_queues WHERE dropped_at IS NOT NULL) q (name)
ORDER BY q.name)")) {
      if (!row[1].is_null())
        spans.emplace_back(row[0].c_str(), IdSpan{row[1].as<std::int64_t>(), row[2].as<std::int64_t>()});
    }
    return spans;
  }

  /// `step` runs the statement that continues after an id. It returns how many rows may be removed, how many
  /// it removed (other sessions had locked or changed the rest), and the id that it reached; null at the end.
  template <typename Step>
  void walk(const IdSpan& span, std::int64_t& removed, const Step& step) {
    for (auto after = span.first - 1; after < span.last && !summary_.stopped;) {
      const auto row = step(after)[0];
      removed += row[1].template as<std::int64_t>();
      summary_.skipped += row[0].template as<std::int64_t>() - row[1].template as<std::int64_t>();
      const auto reached = row[2].template as<std::int64_t>(span.last);
      passed_ids_ += reached - after;
      after = reached;
      ask();
    }
  }

  void ask() {
    const auto fraction = static_cast<double>(passed_ids_) / static_cast<double>(all_ids_);
    const bool goes_on = go_on_({.fraction = fraction,
                                 .tokens = summary_.tokens,
                                 .batches = summary_.batches,
                                 .deliveries = summary_.deliveries});
    summary_.stopped = !goes_on && passed_ids_ < all_ids_;
  }

  Connection& connection_;
  int step_;
  const PruneObserver& go_on_;
  PruneSummary& summary_;
  std::int64_t all_ids_ = 0;
  std::int64_t passed_ids_ = 0;
};

}  // namespace

Pruner::Pruner(Connection& connection, Milliseconds older_than, int step)
    : connection_(connection),
      older_than_(older_than),
      before_(moment_before(connection, older_than)),
      step_(step) {
  connection_.run(session_sql);
  connection_.prepare("count_tokens", old_tokens_sql() + outcome_sql("old"));
  connection_.prepare("remove_tokens", old_tokens_sql() + remove_tokens_sql + outcome_sql("gone"));
  connection_.prepare("count_batches", old_batches_sql() + outcome_sql("old"));
  connection_.prepare("remove_batches", old_batches_sql() + remove_batches_sql + outcome_sql("gone"));
  connection_.prepare("count_deliveries", old_deliveries_sql() + outcome_sql("old"));
  connection_.prepare("remove_deliveries",
                      old_deliveries_sql() + remove_deliveries_sql + outcome_sql("gone"));
}

PruneSummary Pruner::count(const PruneObserver& go_on) {
  PruneSummary summary{.dry_run = true, .older_than = older_than_, .before = before_};
  Pass(connection_, step_, go_on, summary).run();
  return summary;
}

PruneSummary Pruner::remove(const OperationAuthor& author, const PruneObserver& go_on) {
  PruneSummary summary{.older_than = older_than_, .before = before_};
  try {
    Pass(connection_, step_, go_on, summary).run();
  } catch (const ConnectionLost&) {
    throw;
  } catch (const Error&) {
    record(author, summary);
    throw;
  }
  record(author, summary);
  return summary;
}

void Pruner::record(const OperationAuthor& author, const PruneSummary& summary) {
  if (summary.empty()) return;
  connection_.transact([&](pqxx::work& transaction) {
    set_author(transaction, author);
    Connection::execute(transaction, R"(
SELECT mailroom_record_operation('prune', NULL, jsonb_build_object(
  'tokens', $1::bigint, 'batches', $2::bigint, 'deliveries', $7::bigint, 'skipped', $3::bigint, 'older_than', $4::text,
  'before', to_char(to_timestamp($5::bigint) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
  'stopped', $6::boolean)))",
                        summary.tokens, summary.batches, summary.skipped, format_duration(older_than_),
                        in_seconds(before_), summary.stopped, summary.deliveries);
  });
}

}  // namespace mailroom
