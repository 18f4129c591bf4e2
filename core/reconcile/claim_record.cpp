// Reads mailroom_queue_state(), mailroom_operations, and how far back the records are complete.

#include "reconcile/claim_record.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "db/values.hpp"
#include "schema/migration.hpp"

namespace mailroom::reconcile {
namespace {

/// Clocks may have been set back since.
constexpr std::int64_t clock_slack_seconds = 3600;

bool includes(const std::optional<std::string>& actions, const std::string& action) {
  if (!actions) return true;
  const auto names = split(*actions, ',');
  return std::find(names.begin(), names.end(), action) != names.end();
}

// $1 queue, $2 since. The actions are compared as text, not by mailroom_takes(), which this is to check.
const std::string state_sql = fmt::format(R"(
SELECT s.cursor, s.open_from, s.gap_ids::text AS gap_ids,
  (SELECT string_agg(a::text, ',') FROM unnest(mailroom_queue_actions($1)) a) AS actions,
  EXISTS (SELECT FROM mailroom_deliveries WHERE queue = $1) AS has_deliveries,
  f.id AS first_batch, b.id AS base_batch, b.cursor AS base_cursor, {} AS base_us,
  CASE WHEN has_any_column_privilege('mailroom_bounces', 'SELECT')
       THEN EXISTS (SELECT FROM mailroom_bounces WHERE queue = $1) ELSE false END AS has_reports
FROM mailroom_queue_state($1) s
CROSS JOIN (
  SELECT coalesce(min(id), (SELECT coalesce(max(id), 0) + 1 FROM mailroom_batches)) AS id FROM mailroom_batches
  WHERE queue = $1 AND claimed_at >= to_timestamp($2::bigint - {})) f
LEFT JOIN LATERAL (
  SELECT id, cursor, claimed_at FROM mailroom_batches WHERE queue = $1 AND id < f.id ORDER BY id DESC LIMIT 1) b ON true)",
                                          db::microseconds_sql("b.claimed_at"), clock_slack_seconds);

// Of a state whose row was written before the schema kept batches, nothing is on record; prune deletes old
// ones. $1: the name of the version that keeps them.
constexpr const char* incomplete_sql = R"(
SELECT coalesce((SELECT floor(extract(epoch FROM max(at)))::bigint FROM mailroom_schema_history
                 WHERE name = $1 AND direction = 'up'), 0) AS begun,
  coalesce((SELECT max(extract(epoch FROM (details->>'before')::timestamptz)::bigint) FROM mailroom_operations
            WHERE kind = 'prune' AND details->>'before' ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$'), 0) AS pruned)";

const std::string operations_sql = fmt::format(R"(
SELECT o.id, o.kind, {} AS at_us, o.actor, coalesce(o.reason, '') AS reason, lower(r.ids) AS first, upper(r.ids) AS past,
  (o.details->>'cursor_after')::numeric > (o.details->>'cursor_before')::numeric AS is_forward,
  (SELECT string_agg(a, ',') FROM jsonb_array_elements_text(
     CASE jsonb_typeof(o.details#>'{{before,actions}}') WHEN 'array' THEN o.details#>'{{before,actions}}' END) a) AS actions_before,
  (SELECT string_agg(a, ',') FROM jsonb_array_elements_text(
     CASE jsonb_typeof(o.details#>'{{after,actions}}') WHEN 'array' THEN o.details#>'{{after,actions}}' END) a) AS actions_after,
  o.details->>'cursor' AS cursor
FROM mailroom_operations o, LATERAL (SELECT CASE o.kind WHEN 'rewind' THEN mailroom_operation_ids(o.kind, o.details)
                                            ELSE '{{}}' END AS ids) r
WHERE o.queue = $1 AND o.at >= to_timestamp($2::bigint - {})
  AND o.kind IN ('rewind', 'replay', 'create queue', 'set queue')
ORDER BY o.at, o.id)",
                                               db::microseconds_sql("o.at"), clock_slack_seconds);

QueueOperation read_operation(const db::Row& row) {
  QueueOperation operation{.id = row.number("id"),
                           .kind = row.text("kind"),
                           .at = row.number("at_us"),
                           .actor = row.text("actor"),
                           .reason = row.text("reason"),
                           .is_forward = row.optional<bool>("is_forward").value_or(false),
                           .actions_before = row.optional<std::string>("actions_before"),
                           .actions_after = row.optional<std::string>("actions_after")};
  if (!row.is_null("first")) {
    operation.first = row.number("first");
    operation.end = row.number("past");
  }
  operation.knows_actions = operation.kind == "set queue" || operation.kind == "create queue";
  if (operation.kind == "create queue") {
    operation.first = std::numeric_limits<std::int64_t>::min();
    operation.end =
        row.is_null("cursor") ? 1 : parse_number<std::int64_t>(row.view("cursor")).value_or(0) + 1;
  }
  return operation;
}

void read_incompleteness(pqxx::transaction_base& transaction, ClaimRecord& record) {
  const auto row = db::Connection::execute(transaction, incomplete_sql, schema::queue_migration)[0];
  const auto begun = row.number("begun");
  const auto pruned = row.number("pruned");
  record.incomplete_before = std::max(begun, pruned);
  record.incomplete_because =
      pruned >= begun ? "prune has deleted old records" : "the schema kept no records then";
}

}  // namespace

std::string operation_text(const QueueOperation& operation) {
  const auto reason = operation.reason.empty() ? std::string() : ": " + operation.reason;
  return fmt::format("{} by {} at {}{}", operation.kind, operation.actor,
                     moment_text(bounded_moment(std::chrono::microseconds(operation.at))), reason);
}

const QueueOperation* ClaimRecord::find_operation(std::int64_t id) const {
  const auto found =
      std::find_if(operations.begin(), operations.end(), [&](const auto& each) { return each.id == id; });
  return found == operations.end() ? nullptr : &*found;
}

bool ClaimRecord::takes(const std::string& action) const {
  return includes(actions, action);
}

bool ClaimRecord::took(const std::string& action, std::int64_t at) const {
  for (const auto& operation : operations) {
    if (operation.kind == "set queue" && operation.at > at) return includes(operation.actions_before, action);
  }
  return takes(action);
}

const QueueOperation* ClaimRecord::change_that_added(const std::string& action, std::int64_t at) const {
  for (const auto& operation : operations) {
    const bool added = operation.kind == "set queue" && !includes(operation.actions_before, action) &&
                       includes(operation.actions_after, action);
    if (added && operation.at > at) return &operation;
  }
  return nullptr;
}

ClaimRecord read_claim_record(pqxx::transaction_base& transaction, const std::string& queue,
                              std::int64_t since) {
  const auto row = db::Connection::execute(transaction, state_sql, queue, since)[0];
  ClaimRecord record{.queue = queue,
                     .actions = row.optional<std::string>("actions"),
                     .cursor = row.number("cursor"),
                     .open_from = row.number("open_from"),
                     .gap_ids = row.text("gap_ids"),
                     .has_deliveries = row.flag("has_deliveries"),
                     .has_reports = row.flag("has_deliveries") && row.flag("has_reports"),
                     .first_batch = row.number("first_batch")};
  if (!row.is_null("base_batch")) {
    record.base_batch = row.number("base_batch");
    record.base_cursor = row.number("base_cursor");
    record.base_at = row.number("base_us");
  }
  read_incompleteness(transaction, record);
  for (const auto& each : db::Connection::execute(transaction, operations_sql, queue, since))
    record.operations.push_back(read_operation(each));
  return record;
}

}  // namespace mailroom::reconcile
