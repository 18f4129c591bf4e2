// The SQL of a suspension: locks accounts by ascending id, and finds the tokens that no queue has emitted.

#include "accounts/suspension.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace mailroom::accounts {
namespace {

std::string status_of(pqxx::transaction_base& transaction, const AccountRecord& account) {
  const auto rows = db::Connection::execute(
      transaction, "SELECT status FROM accounts WHERE id = $1 FOR UPDATE", account.id);
  if (!rows.empty()) return rows.text();
  throw Error(ExitCode::unusable,
              fmt::format("account {} ({}) has been removed meanwhile", account.id, account.login),
              "no account was changed; try again without it");
}

std::string set_status(pqxx::transaction_base& transaction, const AccountRecord& account,
                       const char* status) {
  // The trigger turns active into provisioned for an account that was never activated.
  return db::Connection::execute(
             transaction, "UPDATE accounts SET status = $2::account_status WHERE id = $1 RETURNING status",
             account.id, status)
      .text();
}

/// The account's due tokens with ids up to `last` that the queue takes and no acknowledged batch of it held.
std::vector<std::int64_t> unemitted_tokens(pqxx::transaction_base& transaction, const std::string& queue,
                                           std::int64_t account, std::int64_t last) {
  return db::Connection::execute(transaction, R"(
WITH due AS MATERIALIZED (
  SELECT t.id, t.created_at FROM tokens t JOIN accounts a ON a.id = t.account
  WHERE t.account = $2 AND t.id <= $3 AND mailroom_takes(mailroom_queue_actions($1), t.action)
    AND mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status,
                             floor(extract(epoch FROM clock_timestamp()))::bigint) = 'due')
SELECT id
FROM due, (
  SELECT mailroom_emitted_ids($1, min(created_at), int8range(min(id), max(id), '[]')) AS ids FROM due) emitted
WHERE NOT coalesce(id <@ emitted.ids, false)
ORDER BY id)",
                                 queue, account, last)
      .values<std::int64_t>();
}

std::int64_t cursor_of(pqxx::transaction_base& transaction, const std::string& queue) {
  return db::Connection::execute(transaction, "SELECT cursor FROM mailroom_queue_state($1)", queue)
      .value<std::int64_t>();
}

using Cursors = std::map<std::string, std::int64_t>;

/// Throws for an unknown queue.
Cursors cursors_of(pqxx::transaction_base& transaction, const std::vector<std::string>& queues) {
  Cursors cursors;
  for (const auto& queue : queues)
    cursors[queue] = cursor_of(transaction, queue);
  return cursors;
}

/// Sets the tokens with ids up to `last` of each queue.
void set_tokens(pqxx::transaction_base& transaction, const Cursors& last, StatusChange& change) {
  for (const auto& [queue, id] : last) {
    auto& tokens = change.by_queue[queue];
    tokens = unemitted_tokens(transaction, queue, change.account.id, id);
    change.tokens.insert(change.tokens.end(), tokens.begin(), tokens.end());
  }
  std::sort(change.tokens.begin(), change.tokens.end());
  change.tokens.erase(std::unique(change.tokens.begin(), change.tokens.end()), change.tokens.end());
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

std::vector<StatusChange> suspend_accounts(pqxx::transaction_base& transaction,
                                           const std::vector<std::string>& queues,
                                           const std::vector<AccountRecord>& accounts) {
  auto all = cursors_of(transaction, queues);
  for (auto& [queue, last] : all)
    last = std::numeric_limits<std::int64_t>::max();
  return change_each(accounts, [&](const AccountRecord& account) {
    StatusChange change{
        .account = account, .before = status_of(transaction, account), .after = {}, .tokens = {}};
    change.after = change.before;
    if (change.before == "suspended") return change;
    set_tokens(transaction, all, change);
    change.after = set_status(transaction, account, "suspended");
    return change;
  });
}

std::vector<StatusChange> restore_accounts(pqxx::transaction_base& transaction,
                                           const std::vector<std::string>& queues,
                                           const std::vector<AccountRecord>& accounts) {
  const auto cursors = cursors_of(transaction, queues);
  return change_each(accounts, [&](const AccountRecord& account) {
    StatusChange change{
        .account = account, .before = status_of(transaction, account), .after = {}, .tokens = {}};
    change.after = change.before == "suspended" ? set_status(transaction, account, "active") : change.before;
    set_tokens(transaction, cursors, change);
    return change;
  });
}

}  // namespace mailroom::accounts
