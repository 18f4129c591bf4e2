// The audit without a subject: totals of each queue, operations and migrations within a period.

#include <algorithm>

#include "audit/history.hpp"
#include "audit/token_facts.hpp"

namespace mailroom::audit {
namespace {

std::vector<QueueTotals> read_totals(pqxx::transaction_base& transaction, const Period& period) {
  const auto rows = db::Connection::execute(transaction, R"(
SELECT queue, count(*) FILTER (WHERE NOT isempty(ids) OR emitted > 0 OR emitted_at IS NULL) AS batches,
  sum(emitted) AS emitted, sum(skipped_expired) AS expired, sum(skipped_consumed) AS consumed,
  sum(skipped_status) AS wrong_status, sum(skipped_invalid) AS invalid,
  count(*) FILTER (WHERE attempts > 1) AS repeated,
  count(*) FILTER (WHERE emitted_at IS NULL AND dead_at IS NULL) AS open,
  count(*) FILTER (WHERE emitted_at IS NULL AND dead_at IS NOT NULL) AS dead,
  count(*) FILTER (
    WHERE NOT isempty(ids) OR emitted_at IS NULL
      OR emitted + skipped_expired + skipped_consumed + skipped_status + skipped_invalid > 0) AS records
FROM mailroom_batches
WHERE claimed_at >= to_timestamp($1::bigint) AND claimed_at < to_timestamp($2::bigint)
GROUP BY queue
ORDER BY queue)",
                                            in_seconds(period.since), in_seconds(period.until));
  std::vector<QueueTotals> totals;
  for (const auto& row : rows) {
    totals.push_back({.queue = row.text("queue"),
                      .batches = row.number("batches"),
                      .emitted = row.number("emitted"),
                      .skipped = {.expired = row.number("expired"),
                                  .consumed = row.number("consumed"),
                                  .wrong_status = row.number("wrong_status"),
                                  .invalid = row.number("invalid")},
                      .repeated = row.number("repeated"),
                      .open = row.number("open"),
                      .dead = row.number("dead"),
                      .records = row.number("records")});
  }
  return totals;
}

/// Adds `rows`, the newest of `total`.
template <typename Rows>
void add(Timeline& timeline, const Rows& rows, std::int64_t total) {
  for (const auto& row : rows)
    timeline.add(row);
  timeline.omitted += std::max<std::int64_t>(0, total - static_cast<std::int64_t>(rows.size()));
}

void add_batches(pqxx::transaction_base& transaction, std::int64_t limit, Overview& overview) {
  const auto& period = overview.period;
  const auto batches = queue::list_batches(transaction, period.since, period.until, limit);
  for (const auto& batch : batches) {
    for (auto& abandonment : abandonments_of(batch)) {
      if (abandonment.at >= period.since) overview.timeline.entries.push_back(std::move(abandonment));
    }
  }
  std::int64_t total = 0;
  for (const auto& queue : overview.queues)
    total += queue.records;
  add(overview.timeline, batches, total);
}

}  // namespace

Overview read_overview(db::Connection& connection, const AuditRequest& request) {
  return in_one_snapshot(connection, request.queues, [&](pqxx::transaction_base& transaction, Moment now) {
    const auto since = request.since.empty() ? "24h" : request.since;
    Overview overview{.now = now, .period = parse_period(since, request.until, now)};
    auto& period = overview.period;
    if (request.until.empty()) period.until = now + std::chrono::seconds(1);
    overview.queues = read_totals(transaction, period);
    for (const auto& change : schema::read_schema_history(transaction)) {
      if (period.has(change.at)) overview.timeline.add(change);
    }
    const auto operations =
        db::Connection::execute(transaction,
                                "SELECT count(*) FROM mailroom_operations "
                                "WHERE at >= to_timestamp($1::bigint) AND at < to_timestamp($2::bigint)",
                                in_seconds(period.since), in_seconds(period.until));
    add(overview.timeline, feed::list_operations(transaction, period.since, period.until, request.limit),
        operations.value<std::int64_t>());
    if (request.batches) add_batches(transaction, request.limit, overview);
    // A batch belongs to the period in which it was claimed, even if it was acknowledged later.
    overview.timeline.arrange({}, request.limit);
    return overview;
  });
}

}  // namespace mailroom::audit
