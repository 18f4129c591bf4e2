#include "accounts/suspension.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace mailroom {
namespace {

std::string status_of(pqxx::transaction_base& transaction, const AccountRecord& account) {
  const auto rows =
      Connection::execute(transaction, "SELECT status FROM accounts WHERE id = $1 FOR UPDATE", account.id);
  if (!rows.empty()) return rows[0][0].c_str();
  throw Error(ExitCode::unusable,
              fmt::format("account {} ({}) has been removed meanwhile", account.id, account.login),
              "no account was changed; try again without it");
}

std::string set_status(pqxx::transaction_base& transaction, const AccountRecord& account,
                       const char* status) {
  // The trigger turns active into provisioned for an account that was never activated.
  return Connection::execute(transaction,
                             "UPDATE accounts SET status = $2::account_status WHERE id = $1 RETURNING status",
                             account.id, status)[0][0]
      .c_str();
}

/// The account's due tokens with ids up to `last` that no acknowledged batch of the queue held.
std::vector<std::int64_t> unemitted_tokens(pqxx::transaction_base& transaction, const std::string& queue,
                                           std::int64_t account, std::int64_t last) {
  const auto rows = Connection::execute(transaction, R"(
WITH due AS MATERIALIZED (
  SELECT t.id, t.created_at FROM tokens t JOIN accounts a ON a.id = t.account
  WHERE t.account = $2 AND t.id <= $3
    AND mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status,
                             floor(extract(epoch FROM clock_timestamp()))::bigint) = 'due')
SELECT id
FROM due, (
  SELECT mailroom_emitted_ids($1, min(created_at), int8range(min(id), max(id), '[]')) AS ids FROM due) emitted
WHERE NOT coalesce(id <@ emitted.ids, false)
ORDER BY id)",
                                        queue, account, last);
  std::vector<std::int64_t> ids;
  for (const auto& row : rows)
    ids.push_back(row[0].as<std::int64_t>());
  return ids;
}

std::int64_t cursor_of(pqxx::transaction_base& transaction, const std::string& queue) {
  return Connection::execute(transaction, "SELECT cursor FROM mailroom_queue_state($1)", queue)[0][0]
      .as<std::int64_t>();
}

void require_queue(pqxx::transaction_base& transaction, const std::string& queue) {
  cursor_of(transaction, queue);
}

template <typename Change>
std::vector<StatusChange> change_each(const std::vector<AccountRecord>& accounts, const Change& change) {
  auto in_order = accounts;
  std::sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  std::vector<StatusChange> changes;
  for (const auto& account : in_order)
    changes.push_back(change(account));
  return changes;
}

}  // namespace

std::vector<StatusChange> suspend_accounts(pqxx::transaction_base& transaction, const std::string& queue,
                                           const std::vector<AccountRecord>& accounts) {
  require_queue(transaction, queue);
  return change_each(accounts, [&](const AccountRecord& account) {
    const auto before = status_of(transaction, account);
    if (before == "suspended")
      return StatusChange{.account = account, .before = before, .after = before, .tokens = {}};
    auto tokens = unemitted_tokens(transaction, queue, account.id, std::numeric_limits<std::int64_t>::max());
    const auto after = set_status(transaction, account, "suspended");
    return StatusChange{.account = account, .before = before, .after = after, .tokens = std::move(tokens)};
  });
}

std::vector<StatusChange> restore_accounts(pqxx::transaction_base& transaction, const std::string& queue,
                                           const std::vector<AccountRecord>& accounts) {
  const auto cursor = cursor_of(transaction, queue);
  return change_each(accounts, [&](const AccountRecord& account) {
    const auto before = status_of(transaction, account);
    const auto after = before == "suspended" ? set_status(transaction, account, "active") : before;
    return StatusChange{.account = account,
                        .before = before,
                        .after = after,
                        .tokens = unemitted_tokens(transaction, queue, account.id, cursor)};
  });
}

}  // namespace mailroom
