// mailroom_lost_messages() finds messages; their tokens are made by the function that the trigger calls. An
// action counts as taken while any queue takes it.

#include "status/unmailed.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/wording.hpp"
#include "db/search_path.hpp"
#include "db/values.hpp"
#include "queue/action.hpp"
#include "status/unsettled.hpp"

namespace mailroom::status {
namespace {

constexpr const char* lost_sql = R"(
SELECT is_fit, count(*), count(*) FILTER (WHERE is_later) AS later,
  array_to_string((array_agg(message ORDER BY message DESC))[1:10], ' ') AS newest
FROM mailroom_lost_messages(to_timestamp($1::bigint), to_timestamp(least($2::bigint, 253402300799))) GROUP BY is_fit)";

// These read the newest 10,000 rows of a table, and look for each in an index: OFFSET 0 and LIMIT 1 keep
// PostgreSQL from a join, for which it would read the other table whole.

/// The bounds of the period in which messages were lost lately, in seconds; no row if none was.
constexpr const char* newest_sql = R"(
SELECT floor(extract(epoch FROM min(m.created_at)))::bigint AS since,
  ceil(extract(epoch FROM max(m.created_at)))::bigint + 1 AS until
FROM (SELECT id, created_at, send_after, replaced_at, cancelled_at, erased_at FROM mailroom_messages
      ORDER BY id DESC LIMIT 10000) m
WHERE m.created_at > now() - interval '1 day'
  AND m.replaced_at IS NULL AND m.cancelled_at IS NULL AND m.erased_at IS NULL
  AND NOT EXISTS (SELECT FROM tokens t WHERE t.message = m.id OFFSET 0)
  AND NOT EXISTS (SELECT FROM mailroom_schedule s WHERE s.send_after = m.send_after AND s.message = m.id OFFSET 0)
HAVING count(*) > 0)";

constexpr const char* accounts_sql = R"(
SELECT count(*) FROM (SELECT id, status, mailroom_home, created_at FROM accounts ORDER BY id DESC LIMIT 10000) a
WHERE a.status = 'provisioned' AND (a.mailroom_home = mailroom_home_number()) IS NOT FALSE
  AND a.created_at > floor(extract(epoch FROM now()))::bigint - 86400
  AND NOT EXISTS (SELECT FROM tokens t WHERE t.account = a.id OFFSET 0))";

std::vector<std::int64_t> ids_in(const std::string& text) {
  std::vector<std::int64_t> ids;
  for (const auto part : split(text, ' '))
    ids.push_back(parse_number<std::int64_t>(part).value_or(0));
  return ids;
}

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
SELECT d.action, t.tokens, (extract(epoch FROM d.at) * 1000000)::bigint AS dropped_us
FROM dropped d, LATERAL (
  SELECT count(*) AS tokens
  FROM (SELECT action, account, created_at, consumed_at, expires_at FROM tokens ORDER BY id DESC LIMIT 10000) t
    LEFT JOIN LATERAL (SELECT status FROM accounts WHERE id = t.account LIMIT 1) a ON true
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
  return may_read_operations(transaction) && db::Connection::execute(transaction, changed_sql, since).empty();
}

}  // namespace

LostMessages read_lost_messages(pqxx::transaction_base& transaction, Moment since, Moment until) {
  const auto allowed = db::Connection::execute(transaction, R"(
SELECT has_any_column_privilege('mailroom_messages', 'SELECT') AND has_table_privilege('mailroom_schedule', 'SELECT'))");
  if (!allowed.value<bool>()) return {.is_known = false};
  LostMessages lost;
  for (const auto& row :
       db::Connection::execute(transaction, lost_sql, in_seconds(since), in_seconds(until))) {
    const bool is_fit = row.flag("is_fit");
    (is_fit ? lost.messages : lost.unfit) = row.number("count");
    if (is_fit) lost.later = row.number("later");
    (is_fit ? lost.newest : lost.newest_unfit) = ids_in(row.text("newest"));
  }
  return lost;
}

LostMessages read_newest_lost_messages(pqxx::transaction_base& transaction) {
  const auto allowed = db::Connection::execute(transaction, R"(
SELECT has_any_column_privilege('mailroom_messages', 'SELECT') AND has_table_privilege('mailroom_schedule', 'SELECT')
  AND NOT row_security_active('mailroom_messages') AND NOT row_security_active('mailroom_schedule')
  AND has_function_privilege('mailroom_lost_messages(timestamptz, timestamptz)', 'EXECUTE'))");
  if (!allowed.value<bool>()) return {.is_known = false};
  const auto rows = db::Connection::execute(transaction, newest_sql);
  if (rows.empty()) return {};
  return read_lost_messages(transaction, rows[0].moment<std::chrono::seconds>("since"),
                            rows[0].moment<std::chrono::seconds>("until"));
}

std::int64_t count_accounts_without_token(pqxx::transaction_base& transaction) {
  const auto allowed = db::Connection::execute(
      transaction,
      "SELECT has_table_privilege('accounts', 'SELECT') AND NOT row_security_active('accounts')");
  return allowed.value<bool>() ? db::Connection::execute(transaction, accounts_sql).value<std::int64_t>() : 0;
}

std::vector<Fix> issue_lost_messages(const LostMessages& lost, const std::string& schema) {
  constexpr const char* of_last_day =
      "FROM @.mailroom_lost_messages(now() - interval '1 day', now()) WHERE is_fit";
  std::vector<Fix> all;
  const auto add = [&](const std::string& statement) {
    all.emplace_back(FixKind::issue_tokens, db::in_schema(statement, schema));
  };
  if (lost.later > 0) {
    add(
        fmt::format("INSERT INTO @.mailroom_schedule (send_after, message) SELECT m.send_after, m.id FROM "
                    "@.mailroom_messages m WHERE m.id IN (SELECT message {} AND is_later);",
                    of_last_day));
  }
  if (lost.messages > lost.later)
    add(fmt::format("SELECT @.mailroom_make_tokens(ARRAY(SELECT message {} AND NOT is_later));",
                    of_last_day));
  return all;
}

Fix issue_account_tokens(const std::string& schema) {
  return {
      FixKind::issue_tokens,
      db::in_schema(
          "INSERT INTO @.tokens (account, action) SELECT a.id, '" + queue::Actions::of_sign_up().name +
              "' FROM @.accounts a WHERE a.status = 'provisioned' AND (a.mailroom_home = "
              "@.mailroom_home_number()) IS NOT FALSE AND a.created_at > extract(epoch FROM now()) - 86400 AND NOT EXISTS (SELECT FROM @.tokens t WHERE t.account = a.id);",
          schema)};
}

std::string messages_text(const std::vector<std::int64_t>& ids, std::int64_t total) {
  const auto others = total - static_cast<std::int64_t>(ids.size());
  auto text = fmt::format("message{} {}", total == 1 ? "" : "s", joined(ids, ", "));
  if (others > 0) text += fmt::format(" and {}", counted(others, "other"));
  return text;
}

std::vector<UntakenAction> read_untaken_actions(pqxx::transaction_base& transaction) {
  std::vector<UntakenAction> actions;
  for (const auto& row : db::Connection::execute(transaction, untaken_sql)) {
    UntakenAction action{.name = queue::short_action_name(row.text("action")),
                         .tokens = row.number("tokens"),
                         .dropped_at = row.optional_moment<std::chrono::microseconds>("dropped_us")};
    if (action.dropped_at && !is_since(transaction, *action.dropped_at)) action.dropped_at.reset();
    action.has_namesake =
        !db::Connection::execute(transaction, "SELECT FROM jobs WHERE job_type = $1", action.name).empty();
    actions.push_back(std::move(action));
  }
  return actions;
}

}  // namespace mailroom::status
