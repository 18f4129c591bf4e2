#include "audit/history.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "audit/queue_facts.hpp"
#include "audit/snapshot.hpp"
#include "audit/token_facts.hpp"
#include "base/moment.hpp"

namespace mailroom {
namespace {

constexpr std::size_t max_reports = 20;

/// An account's row, with the times that only audit needs.
struct AccountLife {
  AccountRecord record;
  std::optional<std::int64_t> activated_at{};
  std::optional<std::int64_t> suspended_at{};
  std::optional<std::int64_t> restored_at{};
};

template <typename Field>
std::optional<std::int64_t> optional_number(const Field& field) {
  if (field.is_null()) return std::nullopt;
  return field.template as<std::int64_t>();
}

std::optional<AccountLife> read_account(pqxx::transaction_base& transaction, std::int64_t account) {
  const auto rows = Connection::execute(transaction, R"(
SELECT id, email, login, status, created_at, activated_at, suspended_at, unsuspended_at
FROM accounts
WHERE id = $1)",
                                        account);
  if (rows.empty()) return std::nullopt;
  const auto& row = rows[0];
  return AccountLife{.record = {.id = row[0].as<std::int64_t>(),
                                .email = row[1].c_str(),
                                .login = row[2].c_str(),
                                .status = row[3].c_str(),
                                .created_at = row[4].as<std::int64_t>()},
                     .activated_at = optional_number(row[5]),
                     .suspended_at = optional_number(row[6]),
                     .restored_at = optional_number(row[7])};
}

/// True if `operations` include the change that the account's row dates to `seconds`. The row has the start
/// of the transaction, rounded; the operation has a later time.
bool is_recorded(const std::vector<Operation>& operations, const std::string& kind, std::int64_t seconds) {
  return std::any_of(operations.begin(), operations.end(), [&](const auto& operation) {
    return operation.kind == kind && operation.at >= to_microseconds(seconds) - microseconds_a_second;
  });
}

void add_account(History& history, const AccountLife& life, const std::vector<Operation>& operations) {
  using What = AccountChange::What;
  const auto add = [&](What what, std::int64_t at) {
    history.timeline.entries.push_back(to_the_second(
        at, AccountChange{.what = what, .account = life.record.id, .login = life.record.login}));
  };
  history.account = life.record;
  add(What::created, life.record.created_at);
  if (life.activated_at) add(What::activated, *life.activated_at);
  if (life.suspended_at && !is_recorded(operations, "suspend", *life.suspended_at))
    add(What::suspended, *life.suspended_at);
  if (life.restored_at && !is_recorded(operations, "restore", *life.restored_at))
    add(What::restored, *life.restored_at);
}

void add_token_changes(History& history, const TokenFacts& token) {
  if (!token.exists) return;
  const auto add = [&](TokenChange::What what, std::int64_t at) {
    history.timeline.entries.push_back(to_the_second(at, TokenChange{.what = what,
                                                                     .token = token.id,
                                                                     .account = token.account,
                                                                     .action = token.action,
                                                                     .expires_at = token.expires_at}));
  };
  add(TokenChange::What::issued, token.created_at);
  if (token.consumed_at) add(TokenChange::What::consumed, *token.consumed_at);
  if (!token.consumed_at && token.expires_at <= history.now)
    add(TokenChange::What::expired, token.expires_at);
}

/// Returns when `tokens` may have been leased: during their lifetimes and, if rewound or replayed, also in
/// the hour after that.
std::vector<TokenSpan> spans_of(const std::vector<TokenFacts>& tokens,
                                const std::vector<Operation>& operations) {
  constexpr std::int64_t hour = 3600;
  std::vector<TokenSpan> spans;
  for (const auto& token : tokens) {
    auto life = token_span(token.id, token.created_at, token.expires_at);
    if (token.exists) life.made = token.created_at;
    spans.push_back(life);
    for (const auto& operation : operations) {
      if (operation.is_forward || !contains(operation.tokens, token.id)) continue;
      spans.push_back({.token = token.id,
                       .since = operation.at / microseconds_a_second,
                       .until = operation.at / microseconds_a_second + hour,
                       .made = life.made});
    }
  }
  return spans;
}

std::vector<IdRange> ids_of(const std::vector<TokenFacts>& tokens) {
  std::vector<IdRange> ids;
  for (const auto& token : tokens)
    ids.push_back({.first = token.id, .end = token.id + 1});
  return ids;
}

std::int64_t earliest_creation(const std::vector<TokenFacts>& tokens) {
  return std::min_element(tokens.begin(), tokens.end(),
                          [](const auto& a, const auto& b) { return a.created_at < b.created_at; })
      ->created_at;
}

void add_skip(History& history, const TokenFacts& token, const TokenStatus& status) {
  history.timeline.entries.push_back({.at = status.skip->at,
                                      .rank = status.skip->at,
                                      .what = TokenSkip{.token = token.id,
                                                        .account = token.account,
                                                        .batch = status.skip->batch,
                                                        .queue = status.queue,
                                                        .reason = status.reason,
                                                        .reason_certain = status.reason_certain}});
}

void add_token_statuses(pqxx::transaction_base& transaction, const AuditRequest& request, History& history,
                        std::vector<TokenFacts> tokens, const std::vector<Operation>& operations,
                        const std::vector<BatchRecord>& batches) {
  tokens.resize(std::min(tokens.size(), max_reports));
  for (auto& token : tokens) {
    token.operations = operations;
    for (const auto& batch : batches) {
      if (contains(batch.tokens, token.id)) token.batches.push_back(batch);
      if (contains(batch.of_others, token.id)) token.id_was_anothers = true;
    }
  }
  read_token_positions(transaction, request.queue, read_schema_history(transaction), tokens);
  for (auto& token : tokens) {
    const auto status = judge_token(token);
    if (status.outcome == Outcome::skipped) add_skip(history, token, status);
    history.tokens.push_back({.token = std::move(token), .status = status});
  }
}

/// Adds the events of `tokens`, and the statuses of the newest.
void add_tokens(pqxx::transaction_base& transaction, const AuditRequest& request, History& history,
                const std::vector<TokenFacts>& tokens) {
  if (tokens.empty()) return;
  const auto operations = operations_on_tokens(
      transaction, ids_of(tokens), std::max(bounded_moment(earliest_creation(tokens)), std::int64_t{0}));
  const auto batches = find_batches(transaction, spans_of(tokens, operations));
  std::for_each(tokens.rbegin(), tokens.rend(),
                [&](const auto& token) { add_token_changes(history, token); });
  for (const auto& operation : operations) {
    if (!operation.tokens.empty()) history.timeline.entries.push_back(entry_of(operation));
  }
  for (const auto& batch : batches) {
    if (batch.tokens.empty()) continue;
    for (const auto& abandonment : abandonments_of(batch))
      history.timeline.entries.push_back(entry_of(abandonment));
    history.timeline.entries.push_back(entry_of(batch));
  }
  add_token_statuses(transaction, request, history, tokens, operations, batches);
}

void add_operations_on_account(History& history, const std::vector<Operation>& operations,
                               const Period& period) {
  for (const auto& operation : operations) {
    const auto seconds = operation.at / microseconds_a_second;
    if (seconds < period.since || seconds > period.until) continue;
    history.timeline.entries.push_back(entry_of(operation));
  }
}

/// Adds the operations on the token's account during the token's lifetime: a suspension explains why the
/// token was not emitted. created_at may be rounded up.
void add_account_of_token(pqxx::transaction_base& transaction, History& history, const TokenFacts& token) {
  if (!token.exists) return;
  history.account_id = token.account;
  if (const auto life = read_account(transaction, token.account)) history.account = life->record;
  add_operations_on_account(history, operations_on_account(transaction, token.account),
                            {.since = bounded_moment(token.created_at) - 1, .until = token.expires_at});
}

/// Adds each lease of the batch and how it ended.
void add_batch(History& history, const BatchRecord& batch) {
  if (batch.is_state_only()) return;
  auto& entries = history.timeline.entries;
  for (const auto& abandonment : abandonments_of(batch)) {
    entries.push_back(entry_of(abandonment.claim));
    entries.push_back(entry_of(abandonment));
  }
  entries.push_back(entry_of(as_claimed(batch)));
  if (!batch.is_open()) entries.push_back(entry_of(batch));
}

void arrange(History& history, const AuditRequest& request) {
  history.timeline.arrange(parse_period(request.since, request.until, history.now), request.limit);
}

}  // namespace

History read_account_history(Connection& connection, std::int64_t account, const AuditRequest& request) {
  return in_one_snapshot(connection, [&](pqxx::transaction_base& transaction, std::int64_t now) {
    require_queue(transaction, request.queue);
    History history{.now = now, .is_of_account = true, .account_id = account};
    const auto operations = operations_on_account(transaction, account);
    if (const auto life = read_account(transaction, account)) {
      add_account(history, *life, operations);
    } else if (operations.empty()) {
      throw Error(ExitCode::unusable, fmt::format("there is no account {}, and no record of one", account),
                  fmt::format("for a token type token:{}, for a batch batch:{}", account, account));
    }
    add_operations_on_account(history, operations, {});
    const auto tokens = read_tokens_of(transaction, account, now, request.limit);
    history.tokens_total = tokens.total;
    add_tokens(transaction, request, history, tokens.newest);
    arrange(history, request);
    return history;
  });
}

History read_token_history(Connection& connection, std::int64_t token, const AuditRequest& request) {
  return in_one_snapshot(connection, [&](pqxx::transaction_base& transaction, std::int64_t now) {
    require_queue(transaction, request.queue);
    History history{.now = now, .tokens_total = 1};
    const auto facts = read_token(transaction, token, now);
    add_account_of_token(transaction, history, facts);
    add_tokens(transaction, request, history, {facts});
    if (!facts.exists && history.timeline.entries.empty()) {
      throw Error(ExitCode::unusable, fmt::format("there is no token {}, and no record of one", token),
                  "its account was deleted, or the transaction that created it was rolled back");
    }
    arrange(history, request);
    return history;
  });
}

History read_batch_history(Connection& connection, std::int64_t batch, const AuditRequest& request) {
  return in_one_snapshot(connection, [&](pqxx::transaction_base& transaction, std::int64_t now) {
    History history{.now = now, .batch = find_batch(transaction, batch)};
    if (!history.batch) {
      throw Error(ExitCode::unusable, fmt::format("there is no record of a batch {}", batch),
                  "older records may have been pruned; mailroom audit --batches lists the last 24 hours");
    }
    add_batch(history, *history.batch);
    for (const auto& operation : operations_on_tokens(transaction, history.batch->tokens,
                                                      history.batch->claimed_at / microseconds_a_second)) {
      const auto& cut = operation.cut_batches;
      const bool took_from_it = std::find(cut.begin(), cut.end(), batch) != cut.end();
      if (operation.queue != history.batch->queue || (operation.tokens.empty() && !took_from_it)) continue;
      history.timeline.entries.push_back(entry_of(operation));
    }
    arrange(history, request);
    return history;
  });
}

}  // namespace mailroom
