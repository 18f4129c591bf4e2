// Counts the tokens between the cursor and the one that is asked for, and the newest batches.

#include "audit/waiting_turn.hpp"

namespace mailroom::audit {

WaitingTurn read_waiting_turn(pqxx::transaction_base& transaction, const std::string& queue,
                              std::int64_t token) {
  const auto row = db::Connection::execute(transaction, R"(
SELECT (SELECT count(*) FROM (
    SELECT FROM tokens t, mailroom_queue_state($1) s
    WHERE t.id > s.cursor AND t.id < $2 AND mailroom_takes(mailroom_queue_actions($1), t.action)
      AND mailroom_is_live(t.consumed_at, t.expires_at, floor(extract(epoch FROM clock_timestamp()))::bigint) LIMIT $3) w) AS before,
  (SELECT coalesce(sum(b.emitted) / greatest(extract(epoch FROM clock_timestamp() - min(b.claimed_at)), 1), 0)::float8
   FROM (SELECT emitted, claimed_at, emitted_at FROM mailroom_batches WHERE queue = $1 ORDER BY id DESC LIMIT 300) b
   WHERE b.emitted_at > clock_timestamp() - interval '5 minutes') AS per_second,
  coalesce((SELECT q.paused_at IS NOT NULL FROM mailroom_queues q WHERE q.name = $1), false) AS is_paused)",
                                           queue, token, WaitingTurn::most_counted)[0];
  return {.before = row.number("before"),
          .per_second = row.number<double>("per_second"),
          .is_paused = row.flag("is_paused")};
}

}  // namespace mailroom::audit
