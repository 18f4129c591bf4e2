// Looks at operations only if the role may read all of them: a collector may not, and shows metrics all the
// same.

#include "status/unsettled.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>

#include "db/connection.hpp"

namespace mailroom::status {
namespace {

/// $1: batches. Operations are read in a statement of its own, since the right to read them is checked once
/// for a statement.
constexpr auto left_sql = R"(
SELECT d.id, count(*) FROM mailroom_batches d,
  unnest(mailroom_batch_ids(d.ids, d.ids_mask) - coalesce((
    SELECT range_agg(x) FROM mailroom_batches s, unnest(s.resent) x
    WHERE s.queue = d.queue AND s.id > d.id AND s.resent IS NOT NULL), '{{}}'){}) g, tokens t
WHERE d.id = ANY ($1::bigint[]) AND t.id >= lower(g) AND t.id < upper(g) AND t.consumed_at IS NULL
GROUP BY d.id)";

constexpr auto without_revoked = R"(
  - coalesce((
    SELECT range_agg(x) FROM mailroom_operations o, unnest(mailroom_operation_ids(o.kind, o.details)) x
    WHERE o.kind = 'revoke' AND o.at > d.dead_at), '{}'))";

// Revoked tokens end by their expiry.
constexpr auto revoked_sql = R"(
SELECT count(*) FROM (
  SELECT FROM mailroom_operations o, unnest(mailroom_operation_ids(o.kind, o.details)) r (ids),
    LATERAL (SELECT t.id FROM tokens t WHERE t.id >= lower(r.ids) AND t.id < upper(r.ids) AND t.consumed_at IS NULL) t
  WHERE o.kind = 'revoke' AND o.at > clock_timestamp() - interval '1 hour' AND NOT EXISTS (
    SELECT FROM mailroom_deliveries d WHERE d.queue = $1 AND d.token = t.id AND d.accepted_at IS NOT NULL)
  LIMIT 1000000) revoked)";

// A row that was inserted by hand may have any details.
constexpr auto went_back_sql = R"(
SELECT o.actor, coalesce(substring(o.details->>'newest' FROM '^\d{1,18}$')::bigint, 0) AS newest,
  coalesce(substring(o.details->>'known' FROM '^\d{1,18}$')::bigint, 0) AS known,
  (extract(epoch FROM clock_timestamp() - o.at) * 1000)::bigint AS age_ms
FROM mailroom_operations o
WHERE o.kind = 'went back' AND o.at > clock_timestamp() - interval '1 day'
  AND NOT EXISTS (SELECT FROM mailroom_operations f WHERE f.kind IN ('rewind', 'replay') AND f.at > o.at)
ORDER BY o.at DESC LIMIT 1)";

}  // namespace

std::int64_t count_revoked_unsent(pqxx::transaction_base& transaction, const std::string& queue) {
  return db::Connection::execute(transaction, revoked_sql, queue).value<std::int64_t>();
}

bool may_read_operations(pqxx::transaction_base& transaction) {
  return db::Connection::execute(transaction,
                                 "SELECT has_table_privilege('mailroom_operations', 'SELECT') "
                                 "AND NOT row_security_active('mailroom_operations')")
      .value<bool>();
}

void keep_unsettled(pqxx::transaction_base& transaction, std::vector<DeadBatch>& dead) {
  if (dead.empty()) return;
  std::string ids;
  for (const auto& batch : dead)
    ids += (ids.empty() ? "{" : ",") + std::to_string(batch.id);
  const auto sql = fmt::format(left_sql, may_read_operations(transaction) ? without_revoked : "");
  std::map<std::int64_t, std::int64_t> left;
  for (const auto& row : db::Connection::execute(transaction, sql, ids + "}"))
    left[row.number("id")] = row.number("count");
  std::erase_if(dead, [&](const DeadBatch& batch) { return !left.contains(batch.id); });
  for (auto& batch : dead)
    batch.tokens = left.at(batch.id);
  std::ranges::sort(dead, std::ranges::greater{}, &DeadBatch::id);
}

std::optional<WentBack> read_went_back(pqxx::transaction_base& transaction) {
  if (!may_read_operations(transaction)) return std::nullopt;
  const auto rows = db::Connection::execute(transaction, went_back_sql);
  if (rows.empty()) return std::nullopt;
  return WentBack{.actor = rows[0].text("actor"),
                  .newest = rows[0].number("newest"),
                  .known = rows[0].number("known"),
                  .age = Milliseconds{std::max<std::int64_t>(rows[0].number("age_ms"), 0)}};
}

}  // namespace mailroom::status
