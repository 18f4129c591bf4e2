// mailroom_lost_messages() finds messages; their tokens are made by the function that the trigger calls.

#include "status/lost_messages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actions/action.hpp"
#include "base/text.hpp"
#include "db/search_path.hpp"
#include "db/values.hpp"

namespace mailroom {
namespace {

constexpr const char* lost_sql = R"(
SELECT is_fit, count(*), count(*) FILTER (WHERE is_later),
  array_to_string((array_agg(message ORDER BY message DESC))[1:10], ' ')
FROM mailroom_lost_messages(to_timestamp($1::bigint), to_timestamp(least($2::bigint, 253402300799))) GROUP BY is_fit)";

/// The bounds of the period in which messages were lost lately, in seconds; no row if none was.
constexpr const char* newest_sql = R"(
SELECT floor(extract(epoch FROM min(m.created_at)))::bigint, ceil(extract(epoch FROM max(m.created_at)))::bigint + 1
FROM mailroom_messages m
WHERE m.id > (SELECT max(id) FROM mailroom_messages) - 10000 AND m.created_at > now() - interval '1 day'
  AND m.replaced_at IS NULL AND m.cancelled_at IS NULL AND m.erased_at IS NULL
  AND NOT EXISTS (SELECT FROM tokens t WHERE t.message = m.id)
  AND NOT EXISTS (SELECT FROM mailroom_schedule s WHERE s.send_after = m.send_after AND s.message = m.id)
HAVING count(*) > 0)";

constexpr const char* accounts_sql = R"(
SELECT count(*) FROM accounts a
WHERE a.id > (SELECT max(id) FROM accounts) - 10000 AND a.status = 'provisioned'
  AND a.created_at > extract(epoch FROM now()) - 86400 AND NOT EXISTS (SELECT FROM tokens t WHERE t.account = a.id))";

std::vector<std::int64_t> ids_in(const std::string& text) {
  std::vector<std::int64_t> ids;
  for (const auto part : split(text, ' '))
    ids.push_back(parse_number<std::int64_t>(part).value_or(0));
  return ids;
}

}  // namespace

LostMessages read_lost_messages(pqxx::transaction_base& transaction, Moment since, Moment until) {
  const auto allowed = Connection::execute(transaction, R"(
SELECT has_any_column_privilege('mailroom_messages', 'SELECT') AND has_table_privilege('mailroom_schedule', 'SELECT'))");
  if (!allowed[0][0].as<bool>()) return {.is_known = false};
  LostMessages lost;
  for (const auto& row : Connection::execute(transaction, lost_sql, in_seconds(since), in_seconds(until))) {
    const bool is_fit = row[0].as<bool>();
    (is_fit ? lost.messages : lost.unfit) = row[1].as<std::int64_t>();
    if (is_fit) lost.later = row[2].as<std::int64_t>();
    (is_fit ? lost.newest : lost.newest_unfit) = ids_in(row[3].c_str());
  }
  return lost;
}

LostMessages read_newest_lost_messages(pqxx::transaction_base& transaction) {
  const auto allowed = Connection::execute(transaction, R"(
SELECT has_any_column_privilege('mailroom_messages', 'SELECT') AND has_table_privilege('mailroom_schedule', 'SELECT')
  AND NOT row_security_active('mailroom_messages') AND NOT row_security_active('mailroom_schedule')
  AND has_function_privilege('mailroom_lost_messages(timestamptz, timestamptz)', 'EXECUTE'))");
  if (!allowed[0][0].as<bool>()) return {.is_known = false};
  const auto rows = Connection::execute(transaction, newest_sql);
  if (rows.empty()) return {};
  return read_lost_messages(transaction, moment_in<std::chrono::seconds>(rows[0][0]),
                            moment_in<std::chrono::seconds>(rows[0][1]));
}

std::int64_t count_accounts_without_token(pqxx::transaction_base& transaction) {
  const auto allowed = Connection::execute(
      transaction,
      "SELECT has_table_privilege('accounts', 'SELECT') AND NOT row_security_active('accounts')");
  return allowed[0][0].as<bool>() ? Connection::execute(transaction, accounts_sql)[0][0].as<std::int64_t>()
                                  : 0;
}

std::vector<Fix> issue_lost_messages(const LostMessages& lost, const std::string& schema) {
  constexpr const char* of_last_day =
      "FROM @.mailroom_lost_messages(now() - interval '1 day', now()) WHERE is_fit";
  std::vector<Fix> all;
  const auto add = [&](const std::string& statement) {
    all.emplace_back(FixKind::issue_tokens, in_schema(statement, schema));
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
  return {FixKind::issue_tokens,
          in_schema(
              "INSERT INTO @.tokens (account, action) SELECT a.id, '" + Actions::of_sign_up().name +
                  "' FROM @.accounts a WHERE a.status = 'provisioned' AND a.created_at > extract(epoch FROM "
                  "now()) - 86400 AND NOT EXISTS (SELECT FROM @.tokens t WHERE t.account = a.id);",
              schema)};
}

std::string messages_text(const std::vector<std::int64_t>& ids, std::int64_t total) {
  const auto others = total - static_cast<std::int64_t>(ids.size());
  auto text = fmt::format("message{} {}", total == 1 ? "" : "s", fmt::join(ids, ", "));
  if (others > 0) text += fmt::format(" and {}", counted(others, "other"));
  return text;
}

}  // namespace mailroom
