// The SQL of a revocation: one UPDATE, whose condition is checked again for a token that is just being used.

#include "replay/revocation.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"
#include "db/values.hpp"
#include "replay/chosen_tokens.hpp"

namespace mailroom::replay {
namespace {

/// A token has the key of the batch that signed it, also if the attempt was abandoned: its mail may have
/// left.
constexpr const char* key_condition = R"(
  AND t.id <@ (SELECT coalesce(range_agg(g), '{}')
    FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g
    WHERE b.queue = q.name AND (b.key = ANY ($4::text[]) OR EXISTS (
      SELECT FROM jsonb_array_elements(b.earlier_attempts) e WHERE e->>'key' = ANY ($4::text[])))))";

/// What the SQL of a revocation begins with: `chosen`, the ids that match in one of the queues $1. $2: the
/// selection, $3: whether the queue must take the action, $4: the keys.
std::string chosen_cte(const RevocationRequest& request) {
  return fmt::format(R"(
WITH clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now),
chosen AS MATERIALIZED (
  SELECT DISTINCT m.id FROM unnest($1::text[]) q (name), LATERAL (
    SELECT t.id {}
      AND (NOT $3::boolean OR mailroom_takes(mailroom_queue_actions(q.name), t.action)) AND $4::text[] IS NOT NULL{}) m))",
                     chosen_tokens_sql(request.selection, "q.name"),
                     request.keys.empty() ? "" : key_condition);
}

constexpr const char* plan_sql = R"(,
held AS MATERIALIZED (
  SELECT s.cursor, mailroom_queue_actions(j.job_type) AS actions,
    coalesce((SELECT range_agg(g) FROM mailroom_gaps h, unnest(h.ids) g WHERE h.id = ANY (s.gap_ids)), '{}') AS gaps,
    coalesce((SELECT range_agg(g) FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g
              WHERE b.queue = j.job_type AND b.emitted_at IS NULL AND b.dead_at IS NULL), '{}') AS leased
  FROM jobs j, LATERAL mailroom_queue_state(j.job_type) s),
judged AS MATERIALIZED (
  SELECT t.id, t.account, t.consumed_at IS NOT NULL AS consumed,
    t.consumed_at IS NULL AND t.expires_at <= clock.now AS expired,
    mailroom_is_live(t.consumed_at, t.expires_at, clock.now) AS live,
    EXISTS (SELECT FROM held h WHERE mailroom_takes(h.actions, t.action)
            AND (t.id > h.cursor OR t.id <@ h.gaps)) AS waiting,
    EXISTS (SELECT FROM held h WHERE t.id <@ h.leased) AS leased
  FROM clock, chosen c JOIN tokens t ON t.id = c.id)
SELECT count(*) FILTER (WHERE live) AS live, count(DISTINCT account) FILTER (WHERE live) AS accounts,
  count(*) FILTER (WHERE live AND waiting AND NOT leased) AS waiting, count(*) FILTER (WHERE live AND leased) AS leased,
  count(*) FILTER (WHERE consumed) AS consumed, count(*) FILTER (WHERE expired) AS expired,
  array_to_string(ARRAY(SELECT id FROM judged WHERE live ORDER BY id DESC LIMIT 11), ' ') AS newest
FROM judged)";

constexpr const char* end_sql = R"(,
ended AS (
  UPDATE tokens t SET expires_at = clock.now FROM clock, chosen c
  WHERE t.id = c.id AND mailroom_is_live(t.consumed_at, t.expires_at, clock.now) RETURNING t.id)
SELECT count(*), coalesce(range_agg(int8range(id, id, '[]')), '{}')::text AS ids FROM ended)";

db::Rows run(pqxx::transaction_base& transaction, const RevocationRequest& request, const char* sql) {
  return db::Connection::execute(transaction, chosen_cte(request) + sql,
                                 db::quoted_array_text(request.queues), request.selection.parameter(),
                                 request.only_taken, db::quoted_array_text(request.keys));
}

}  // namespace

RevocationPlan plan_revocation(db::Connection& connection, const RevocationRequest& request) {
  const auto row =
      connection.alone([&](auto& transaction) { return run(transaction, request, plan_sql); })[0];
  std::vector<std::int64_t> newest;
  for (const auto part : split(row.view("newest"), ' '))
    if (const auto id = parse_number<std::int64_t>(part)) newest.push_back(*id);
  return {.live = row.number("live"),
          .accounts = row.number("accounts"),
          .waiting = row.number("waiting"),
          .leased = row.number("leased"),
          .consumed = row.number("consumed"),
          .expired = row.number("expired"),
          .newest = std::move(newest)};
}

std::int64_t carry_out_revocation(db::Connection& connection, const RevocationRequest& request,
                                  const queue::OperationAuthor& author) {
  return connection.transact([&](pqxx::work& transaction) {
    queue::set_author(transaction, author);
    const auto row = run(transaction, request, end_sql)[0];
    const auto ended = row.number("count");
    if (ended == 0) return ended;
    auto details = selection_details(request.asked);
    if (request.only_taken) details["queues"] = request.queues;
    if (!request.keys.empty()) details["keys"] = request.keys;
    details["revoked"] = ended;
    details["ids"] = row.text("ids");
    db::Connection::execute(transaction, "SELECT mailroom_record_operation('revoke', NULL, $1::jsonb)",
                            plain_json(details));
    return ended;
  });
}

}  // namespace mailroom::replay
