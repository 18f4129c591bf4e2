// The SQL that makes ranges of batches, gaps and operations. Usual batches in a row become one range.

#include "reconcile/recorded_ranges.hpp"

#include <fmt/format.h>
#include <limits>

#include "db/values.hpp"

namespace mailroom::reconcile {
namespace {

constexpr int rows_at_once = 20'000;

// $1 queue, $2 the first batch, $3 and $4 what the cursor and the time were before it, $5 the cursor now. A
// batch that took all that its claim passed is one range. So are such batches one after the other, if nothing
// is peculiar about them and the seconds of their times are the same, unless $13 says that batches must be
// kept apart: each begins where the one before ends, so the last one ends where the next range begins. A
// queue that was made by hand has a cursor and no batch: nobody says who passed the ids before it. The exact
// number of a batch's ids is counted only where it can differ from the number of its tokens. What a consumer
// skipped is among the ids that it skipped, with what the receiver refused if it records outcomes
// ($11): then the claim's share is not known exactly.
const std::string records_sql = fmt::format(
    R"(
DECLARE mailroom_ranges NO SCROLL CURSOR FOR
WITH chain AS (
  SELECT b.*, lag(b.cursor, 1, $3::bigint) OVER (ORDER BY b.id) AS before
  FROM mailroom_batches b WHERE b.queue = $1 AND b.id >= $2::bigint),
timed AS (
  SELECT b.*, b.claimed_by ~ '^mailroom send[@ ]' AS by_sender,
    b.ids_mask IS NULL AND isempty(b.skipped_ids) AND b.cursor > b.before
      AND b.ids = int8multirange(int8range(b.before, b.cursor, '(]')) AS is_usual
  FROM chain b),
keyed AS (
  SELECT b.*, CASE WHEN NOT $13::boolean AND b.is_usual AND b.emitted_at IS NOT NULL AND b.attempts = 1
                        AND b.earlier_attempts IS NULL AND b.emitted = b.cursor - b.before AND NOT b.by_sender
                   THEN floor(date_part('epoch', b.claimed_at)) END AS lease_second,
    floor(date_part('epoch', b.emitted_at)) AS end_second
  FROM timed b ORDER BY b.id OFFSET 0),
begun AS (
  SELECT b.*, b.lease_second IS NOT DISTINCT FROM lag(b.lease_second) OVER w
              AND b.end_second IS NOT DISTINCT FROM lag(b.end_second) OVER w AND b.lease_second IS NOT NULL AS goes_on
  FROM keyed b WINDOW w AS (ORDER BY b.id)),
claims AS MATERIALIZED (
  SELECT b.id, b.ids, b.ids_mask, b.skipped_ids, b.is_usual, b.before,
    CASE WHEN b.lease_second IS NULL THEN b.cursor ELSE lead(b.before, 1, $5::bigint) OVER (ORDER BY b.id) END AS cursor,
    {leased} AS leased, {ended} AS ended,
    CASE WHEN b.emitted_at IS NOT NULL THEN 1 WHEN b.dead_at IS NOT NULL THEN 2 ELSE 0 END AS state, b.attempts,
    b.emitted, b.by_sender, b.collector, b.claimed_by, b.claimed_at, b.earlier_attempts,
    b.skipped_expired + b.skipped_consumed + b.skipped_status + b.skipped_invalid AS skipped,
    b.skipped_expired + b.skipped_consumed AS unfit
  FROM begun b WHERE NOT b.goes_on),
sessions AS MATERIALIZED (
  SELECT collector, claimed_by, max(claimed_at) AS last FROM mailroom_batches
  WHERE queue = $1 AND id >= $2::bigint GROUP BY 1, 2),
known AS MATERIALIZED (
  SELECT c.*,
    CASE WHEN c.state = 1 AND upper(c.ids) - lower(c.ids) <> c.emitted THEN c.emitted < (
      SELECT sum(upper(g) - lower(g)) FROM unnest(mailroom_batch_ids(c.ids, c.ids_mask)) g) ELSE false END AS is_short,
    CASE WHEN $11::boolean THEN c.unfit WHEN isempty(c.skipped_ids) THEN c.unfit ELSE least(c.unfit, c.skipped - (
      SELECT sum(upper(g) - lower(g)) FROM unnest(c.skipped_ids) g)) END AS skipped_by_claim,
    greatest(upper(c.ids), upper(c.skipped_ids)) AS batch_end,
    CASE WHEN c.attempts = 1 THEN false ELSE EXISTS (
      SELECT FROM jsonb_array_elements(c.earlier_attempts) WITH ORDINALITY e (attempt, place)
      CROSS JOIN LATERAL (
        SELECT coalesce((c.earlier_attempts->place::int->>'collector')::int, c.collector) AS collector,
          coalesce((c.earlier_attempts->place::int->>'claimed_at')::timestamptz, c.claimed_at) AS at) n
      JOIN sessions s ON s.collector = (e.attempt->>'collector')::int AND s.claimed_by = e.attempt->>'claimed_by'
      WHERE n.collector <> s.collector AND s.last > n.at + interval '1 s'
        AND NOT pg_postmaster_start_time() BETWEEN (e.attempt->>'claimed_at')::timestamptz AND n.at) END AS lives_on
  FROM claims c)
SELECT * FROM (
  SELECT 0 AS kind, before + 1 AS first, cursor + 1 AS past, id, leased, ended, state, attempts, is_short, lives_on, by_sender,
    emitted, skipped_by_claim, cursor + 1 AS batch_end, NULL AS mask FROM known WHERE is_usual
  UNION ALL
  SELECT 1, before + 1, cursor + 1, id, leased, ended, state, attempts, is_short, lives_on, by_sender, emitted, skipped_by_claim,
    cursor + 1, NULL FROM known WHERE NOT is_usual AND cursor > before
  UNION ALL
  SELECT 2, lower(g), upper(g), id, leased, ended, state, attempts, is_short, lives_on, by_sender, emitted, skipped_by_claim,
    batch_end, ids_mask::text FROM known, unnest(ids) u (g) WHERE NOT is_usual
  UNION ALL
  SELECT 3, lower(g), upper(g), id, leased, ended, state, attempts, is_short, lives_on, by_sender, emitted, skipped_by_claim,
    batch_end, NULL FROM known, unnest(skipped_ids) u (g)
  UNION ALL
  SELECT 1, -9223372036854775808, $3::bigint + 1, 0, $4::bigint, $4::bigint, 1, 1, false, false, false, 0, 9223372036854775807,
    $3::bigint + 1, NULL
  UNION ALL
  SELECT 1, $3::bigint + 1, $5::bigint + 1, 0, {now}, {now}, 1, 1, false, false, false, 0, 0, $5::bigint + 1, NULL
  WHERE $5::bigint > $3::bigint AND NOT EXISTS (SELECT FROM chain)
  UNION ALL
  SELECT CASE WHEN h.horizon = '0' THEN 5 ELSE 4 END, lower(g), upper(g), 0, 0, NULL, 0, 1, false, false, false, 0, 0, 0, NULL
  FROM mailroom_gaps h, unnest(h.ids) u (g) WHERE h.id = ANY ($6::bigint[])
  UNION ALL
  SELECT 6, $5::bigint + 1, 9223372036854775807, 0, 0, NULL, 0, 1, false, false, false, 0, 0, 0, NULL
  UNION ALL
  SELECT 7, lower(g), upper(g), o.id, {at}, NULL, 0, 1, false, false, false, 0, 0, 0, NULL
  FROM mailroom_operations o, unnest(CASE WHEN o.kind IN ('rewind', 'replay')
                                     THEN mailroom_operation_ids(o.kind, o.details) END) u (g)
  WHERE o.id = ANY ($7::bigint[])
  UNION ALL
  SELECT 7, -9223372036854775808, 9223372036854775807, o.id, {at}, NULL, 0, 1, false, false, false, 0, 0, 0, NULL
  FROM mailroom_operations o WHERE o.id = ANY ($7::bigint[]) AND o.kind = 'create queue'
  UNION ALL
  SELECT 8, lower(g), upper(g), o.id, {at}, NULL, 0, 1, false, false, false, 0, 0, 0, NULL
  FROM mailroom_operations o, jsonb_array_elements(CASE jsonb_typeof(o.details->'cut') WHEN 'array' THEN o.details->'cut'
                                                   END) c, unnest((c->>'ids')::int8multirange) u (g)
  WHERE $12::boolean AND o.id = ANY ($7::bigint[])
  UNION ALL
  SELECT 10, -9223372036854775808, b.past, b.id, b.at, NULL, 0, 1, false, false, false, 0, 0, 0, NULL
  FROM unnest($8::bigint[], $9::bigint[], $10::bigint[]) b (id, past, at)) p
ORDER BY first)",
    fmt::arg("leased", db::microseconds_sql(
                           "coalesce((b.earlier_attempts->0->>'claimed_at')::timestamptz, b.claimed_at)")),
    fmt::arg("ended", db::microseconds_sql("coalesce(b.emitted_at, b.dead_at)")),
    fmt::arg("at", db::microseconds_sql("o.at")), fmt::arg("now", db::microseconds_sql("clock_timestamp()")));

RecordedRange read_range(const db::Row& row) {
  return {.first = row.number("first"),
          .end = row.number("past"),
          .kind = static_cast<RangeKind>(row.number<int>("kind")),
          .source = row.number("id"),
          .leased_at = row.number("leased"),
          .ended_at = row.optional<std::int64_t>("ended").value_or(0),
          .state = static_cast<BatchState>(row.number<int>("state")),
          .attempts = row.number<int>("attempts"),
          .is_short = row.flag("is_short"),
          .lives_on = row.flag("lives_on"),
          .by_sender = row.flag("by_sender"),
          .emitted = row.number("emitted"),
          .skipped = row.number("skipped_by_claim"),
          .batch_end = row.number("batch_end"),
          .mask = row.text("mask")};
}

/// The ranges of a consumer's output, in the order of the other ranges.
class WrittenRanges {
 public:
  explicit WrittenRanges(const ConsumerOutput* output) : output_(output) {}

  void report_up_to(std::int64_t first, const std::function<void(RecordedRange)>& each) {
    for (; output_ != nullptr && next_ < output_->written.size() && output_->written[next_].first <= first;
         ++next_) {
      const auto& range = output_->written[next_];
      each({.first = range.first, .end = range.end, .kind = RangeKind::written});
    }
  }

 private:
  const ConsumerOutput* output_;
  std::size_t next_ = 0;
};

}  // namespace

void read_recorded_ranges(pqxx::transaction_base& transaction, const ClaimRecord& record,
                          const std::function<void(RecordedRange)>& each) {
  std::vector<std::int64_t> operations;
  std::vector<std::int64_t> creations;
  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> created_at;
  for (const auto& operation : record.operations) {
    operations.push_back(operation.id);
    if (operation.kind != "create queue") continue;
    creations.push_back(operation.id);
    begins.push_back(operation.end);
    created_at.push_back(operation.at);
  }
  db::Connection::execute(transaction, records_sql, record.queue, record.first_batch, record.base_cursor,
                          record.base_at, record.cursor, record.gap_ids, db::array_text(operations),
                          db::array_text(creations), db::array_text(begins), db::array_text(created_at),
                          record.has_deliveries, record.output != nullptr,
                          record.has_deliveries || record.output != nullptr);
  WrittenRanges written(record.output);
  const auto fetch = fmt::format("FETCH FORWARD {} FROM mailroom_ranges", rows_at_once);
  for (auto rows = db::Connection::execute(transaction, fetch); !rows.empty();
       rows = db::Connection::execute(transaction, fetch)) {
    for (const auto& row : rows) {
      auto range = read_range(row);
      written.report_up_to(range.first, each);
      each(std::move(range));
    }
  }
  written.report_up_to(std::numeric_limits<std::int64_t>::max(), each);
  db::Connection::execute(transaction, "CLOSE mailroom_ranges");
}

}  // namespace mailroom::reconcile
