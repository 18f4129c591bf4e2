// Finds them, and what of their tokens waits.

#include "status/untaken_actions.hpp"

#include "actions/action.hpp"
#include "db/values.hpp"
#include "status/unsettled.hpp"

namespace mailroom {
namespace {

constexpr const char* untaken_sql = R"(
WITH untaken AS (
  SELECT a.action, a.number, a.action::token_action AS label FROM mailroom_actions a
  WHERE a.retired_at IS NULL AND NOT EXISTS (
    SELECT FROM jobs j LEFT JOIN mailroom_queues q ON q.name = j.job_type
    WHERE mailroom_takes(q.actions, a.action::token_action))),
dropped AS (
  SELECT u.*, (SELECT max(q.dropped_at) FROM mailroom_queues q
               WHERE q.dropped_at IS NOT NULL AND mailroom_takes(q.actions, u.label)) AS at
  FROM untaken u WHERE u.action <> 'message' OR EXISTS (SELECT FROM mailroom_messages))
SELECT d.action, t.tokens, (extract(epoch FROM d.at) * 1000000)::bigint
FROM dropped d, LATERAL (
  SELECT count(*) AS tokens
  FROM (SELECT action, account, created_at, consumed_at, expires_at FROM tokens
        WHERE id > (SELECT max(id) FROM tokens) - 10000 ORDER BY id) t LEFT JOIN accounts a ON a.id = t.account
  WHERE t.action = d.label AND t.created_at >= coalesce(floor(extract(epoch FROM d.at)), 0)
    AND mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, extract(epoch FROM clock_timestamp())::bigint) = 'due') t
ORDER BY d.number)";

/// True if no queue can have taken the action since `dropped_at`: a queue that did takes it still, unless its
/// actions were changed.
bool is_since(pqxx::transaction_base& transaction, Moment dropped_at) {
  constexpr const char* changed_sql =
      "SELECT FROM mailroom_operations WHERE kind = 'set queue' "
      "AND (extract(epoch FROM at) * 1000000)::bigint > $1::bigint LIMIT 1";
  const auto since = std::chrono::floor<std::chrono::microseconds>(dropped_at.time_since_epoch()).count();
  return may_read_operations(transaction) && Connection::execute(transaction, changed_sql, since).empty();
}

}  // namespace

std::vector<UntakenAction> read_untaken_actions(pqxx::transaction_base& transaction) {
  std::vector<UntakenAction> actions;
  for (const auto& row : Connection::execute(transaction, untaken_sql)) {
    UntakenAction action{.name = short_action_name(row[0].c_str()),
                         .tokens = row[1].as<std::int64_t>(),
                         .dropped_at = optional_moment_in<std::chrono::microseconds>(row[2])};
    if (action.dropped_at && !is_since(transaction, *action.dropped_at)) action.dropped_at.reset();
    action.has_namesake =
        !Connection::execute(transaction, "SELECT FROM jobs WHERE job_type = $1", action.name).empty();
    actions.push_back(std::move(action));
  }
  return actions;
}

}  // namespace mailroom
