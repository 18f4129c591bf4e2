#include "audit/token_facts.hpp"

#include <fmt/format.h>

#include "base/moment.hpp"

namespace mailroom {
namespace {

/// $1 is the clock. Never reads the secret or the code.
constexpr const char* columns = R"(
  t.id, t.action, mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, $1::bigint),
  coalesce(a.status::text, ''), t.account, t.created_at, t.expires_at, t.consumed_at)";

template <typename Row>
TokenFacts read_row(const Row& row) {
  TokenFacts token{.id = row[0].template as<std::int64_t>(),
                   .action = row[1].c_str(),
                   .state = row[2].c_str(),
                   .status = row[3].c_str(),
                   .account = row[4].template as<std::int64_t>(),
                   .created_at = row[5].template as<std::int64_t>(),
                   .expires_at = row[6].template as<std::int64_t>()};
  if (!row[7].is_null()) token.consumed_at = row[7].template as<std::int64_t>();
  return token;
}

/// Throws Error(unusable) if neither the sequence nor a cursor has reached `id`. The sequence may be behind
/// the cursors after tokens were truncated or restored.
void require_drawn(pqxx::transaction_base& transaction, std::int64_t id) {
  const auto newest = Connection::execute(transaction, R"(
SELECT greatest(
  (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM tokens_id_seq),
  (SELECT max(s.cursor) FROM jobs j, LATERAL mailroom_queue_state(j.job_type) s)))")[0][0]
                          .as<std::int64_t>();
  if (id <= newest) return;
  throw Error(ExitCode::unusable, fmt::format("there is no token {}", id),
              newest > 0 ? fmt::format("the newest token is {}", newest)
                         : std::string("no token has been created yet"));
}

/// Estimates the times of a missing token from its neighbours: ids roughly follow time, and a token lives for
/// less than a day.
TokenFacts missing_token(pqxx::transaction_base& transaction, std::int64_t id, std::int64_t now) {
  constexpr std::int64_t day = 86'400;
  const auto row = Connection::execute(transaction, R"(
SELECT (SELECT created_at FROM tokens WHERE id < $1 ORDER BY id DESC LIMIT 1),
  (SELECT created_at FROM tokens WHERE id > $1 ORDER BY id LIMIT 1))",
                                       id)[0];
  TokenFacts token{.id = id, .exists = false, .expires_at = now};
  if (!row[0].is_null()) token.created_at = row[0].as<std::int64_t>();
  if (!row[1].is_null()) token.expires_at = bounded_moment(row[1].as<std::int64_t>()) + day;
  return token;
}

}  // namespace

AccountTokens read_tokens_of(pqxx::transaction_base& transaction, std::int64_t account, std::int64_t now,
                             std::int64_t limit) {
  // Materialized: otherwise the planner may scan the primary key in order instead of the index on account.
  const auto rows = Connection::execute(transaction,
                                        fmt::format(R"(
WITH mine AS MATERIALIZED (
  SELECT id, action, account, expires_at, consumed_at, created_at FROM tokens WHERE account = $2)
SELECT {}, (SELECT count(*) FROM mine)
FROM mine t LEFT JOIN accounts a ON a.id = $2
ORDER BY t.id DESC
LIMIT $3)",
                                                    columns),
                                        now, account, limit);
  AccountTokens tokens;
  for (const auto& row : rows) {
    tokens.newest.push_back(read_row(row));
    tokens.total = row[8].as<std::int64_t>();
  }
  return tokens;
}

TokenFacts read_token(pqxx::transaction_base& transaction, std::int64_t id, std::int64_t now) {
  const auto rows = Connection::execute(
      transaction,
      fmt::format("SELECT {} FROM tokens t LEFT JOIN accounts a ON a.id = t.account WHERE t.id = $2",
                  columns),
      now, id);
  if (!rows.empty()) return read_row(rows[0]);
  require_drawn(transaction, id);
  return missing_token(transaction, id, now);
}

}  // namespace mailroom
