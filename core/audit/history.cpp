// Gathers the events of one account, token or batch from every table that records some.

#include "audit/history.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "audit/token_facts.hpp"
#include "audit/token_history.hpp"
#include "audit/trace_ids.hpp"
#include "db/values.hpp"

namespace mailroom::audit {
namespace {

/// Returns the changes of an account that its row dates, or nothing if there is no such account.
std::vector<feed::Event> read_account(pqxx::transaction_base& transaction, std::int64_t account) {
  struct Change {
    feed::EventKind kind;
    db::ColumnName column;
  };
  constexpr std::array kinds{Change{feed::EventKind::created, "created_at"},
                             Change{feed::EventKind::activated, "activated_at"},
                             Change{feed::EventKind::suspended, "suspended_at"},
                             Change{feed::EventKind::restored, "unsuspended_at"}};
  std::vector<feed::Event> changes;
  for (const auto& row : db::Connection::execute(transaction, R"(
SELECT id, email, login, status, created_at, activated_at, suspended_at, unsuspended_at
FROM accounts
WHERE id = $1)",
                                                 account)) {
    const accounts::AccountRecord record{.id = row.number("id"),
                                         .email = row.text("email"),
                                         .login = row.text("login"),
                                         .status = row.text("status")};
    for (const auto& [kind, column] : kinds) {
      if (const auto at = row.optional_moment<std::chrono::seconds>(column))
        changes.push_back({kind, *at, record});
    }
  }
  return changes;
}

/// True if `operations` include the change that the account's row dates. The row has the start of the
/// transaction, rounded; the operation has a later time.
bool is_recorded(const std::vector<feed::Operation>& operations, const feed::Event& change) {
  return std::any_of(operations.begin(), operations.end(), [&](const auto& operation) {
    return operation.kind == change.kind && operation.at >= change.at - std::chrono::seconds(1);
  });
}

/// Adds the operations on the token's account during the token's lifetime: a suspension explains why the
/// token was not emitted. created_at may be rounded up.
void add_account_of_token(pqxx::transaction_base& transaction, History& history, const TokenFacts& token) {
  if (!token.exists || token.account.id == 0) return;
  history.account_id = token.account.id;
  if (!token.account.status.empty()) history.account = token.account;
  const Period lifetime{.since = token.created_at - std::chrono::seconds(1),
                        .until = token.expires_at + std::chrono::seconds(1)};
  for (const auto& operation : feed::operations_on_account(transaction, token.account.id)) {
    if (lifetime.has(operation.at)) history.timeline.add(operation);
  }
}

/// Adds each lease of the batch and how it ended.
void add_batch(Timeline& timeline, const queue::BatchRecord& batch) {
  if (batch.is_state_only()) return;
  for (auto& abandonment : abandonments_of(batch)) {
    timeline.add(*abandonment.batch());
    timeline.entries.push_back(std::move(abandonment));
  }
  timeline.add(queue::as_claimed(batch));
  if (!batch.is_open()) timeline.add(batch);
}

/// Adds the outcomes of its tokens that the batch recorded: while it was leased, no other batch of its queue
/// held them.
void add_deliveries_of(pqxx::transaction_base& transaction, Timeline& timeline,
                       const queue::BatchRecord& batch) {
  const auto from = batch.abandoned.empty() ? batch.claimed_at : batch.abandoned.front().claimed_at;
  const auto until = batch.emitted_at.value_or(batch.dead_at.value_or(Moment::max()));
  for (auto& delivery : feed::find_deliveries(transaction, batch.tokens)) {
    if (delivery.queue != batch.queue) continue;
    for (auto& attempt : delivery.attempts) {
      const bool is_last = attempt.at == delivery.last().at && delivery.batch == batch.id;
      if (is_last || (attempt.at >= from && attempt.at <= until)) timeline.add(attempt);
    }
  }
}

/// Adds messages, and to `tokens`, newest first, those of theirs that it lacks.
void add_messages(pqxx::transaction_base& transaction, History& history,
                  const std::vector<std::int64_t>& messages, std::vector<TokenFacts>& tokens) {
  for (const auto id : messages)
    history.messages.push_back(messages::read_summary_within(transaction, id));
  if (messages.empty()) return;
  for (const auto& operation : feed::operations_on_messages(transaction, messages))
    history.timeline.add(operation);
  auto missing = messages::tokens_of_messages(transaction, messages);
  std::erase_if(missing,
                [&](auto id) { return std::ranges::find(tokens, id, &TokenFacts::id) != tokens.end(); });
  history.tokens_total += static_cast<std::int64_t>(missing.size());
  for (const auto& token : feed::find_tokens(transaction, missing))
    tokens.push_back({token});
  std::ranges::sort(tokens, std::ranges::greater(), &TokenFacts::id);
}

/// Adds why the person gets no mails, or gets them again.
void add_addresses(pqxx::transaction_base& transaction, History& history, const std::string& address) {
  std::vector<std::string> addresses;
  if (!address.empty()) addresses.push_back(address);
  if (history.is_of_account && history.account) addresses.push_back(history.account->email);
  if (addresses.empty()) return;
  for (const auto& operation : feed::operations_on_addresses(transaction, addresses))
    history.timeline.add(operation);
}

/// Where a trigger has made no token, doctor finds all of the kind.
void add_steps_without_token(History& history) {
  const bool is_account =
      history.account && history.account->status == "provisioned" && history.is_of_account;
  const bool is_message =
      std::ranges::any_of(history.messages, [](const auto& message) { return message.is_only("no_token"); });
  if (history.tokens_total == 0 && (is_account || is_message))
    history.next.push_back({.text = "to find all of the last day without a token, and to make their tokens",
                            .command = "mailroom doctor"});
}

void set_trace_ids(pqxx::transaction_base& transaction, std::vector<TokenReport>& reports) {
  std::vector<std::int64_t> ids;
  for (const auto& report : reports)
    ids.push_back(report.token.id);
  const auto traces = read_trace_ids(transaction, ids);
  for (auto& report : reports) {
    if (const auto found = traces.find(report.token.id); found != traces.end())
      report.token.trace_id = found->second;
  }
}

/// Calls `fill(transaction, history)`, then arranges the timeline.
template <typename Fill>
History read_history(db::Connection& connection, const AuditRequest& request,
                     const std::vector<std::string>& queues, const Fill& fill) {
  return in_one_snapshot(connection, queues, [&](pqxx::transaction_base& transaction, Moment now) {
    History history{.now = now};
    fill(transaction, history);
    add_addresses(transaction, history, request.address);
    add_steps_without_token(history);
    set_trace_ids(transaction, history.tokens);
    history.timeline.arrange(parse_period(request.since, request.until, now), request.limit);
    return history;
  });
}

}  // namespace

History read_account_history(db::Connection& connection, std::int64_t account,
                             const std::vector<std::int64_t>& messages, const AuditRequest& request) {
  return read_history(
      connection, request, request.queues, [&](pqxx::transaction_base& transaction, History& history) {
        history.is_of_account = true;
        history.account_id = account;
        const auto operations = feed::operations_on_account(transaction, account);
        const auto changes = read_account(transaction, account);
        if (changes.empty() && operations.empty()) {
          throw Error(ExitCode::unusable,
                      fmt::format("there is no account {}, and no record of one", account),
                      fmt::format("for a token type token:{}, for a batch batch:{}", account, account));
        }
        if (!changes.empty()) history.account = *changes.front().account();
        for (const auto& change : changes) {
          if (!is_recorded(operations, change)) history.timeline.entries.push_back(change);
        }
        for (const auto& operation : operations)
          history.timeline.add(operation);
        const auto tokens = feed::find_tokens_of(transaction, account, request.limit);
        history.tokens_total = tokens.total;
        std::vector<TokenFacts> facts;
        for (const auto& token : tokens.newest)
          facts.push_back({token});
        add_messages(transaction, history, messages, facts);
        add_tokens(transaction, request, history, std::move(facts));
      });
}

History read_message_history(db::Connection& connection, const std::vector<std::int64_t>& messages,
                             const AuditRequest& request) {
  return read_history(connection, request, request.queues,
                      [&](pqxx::transaction_base& transaction, History& history) {
                        std::vector<TokenFacts> facts;
                        add_messages(transaction, history, messages, facts);
                        add_tokens(transaction, request, history, std::move(facts));
                      });
}

History read_token_history(db::Connection& connection, std::int64_t token, const AuditRequest& request) {
  return read_history(
      connection, request, request.queues, [&](pqxx::transaction_base& transaction, History& history) {
        history.tokens_total = 1;
        const auto facts = read_token(transaction, token, history.now);
        add_account_of_token(transaction, history, facts);
        add_tokens(transaction, request, history, {facts});
        if (!facts.exists && history.timeline.entries.empty()) {
          throw Error(ExitCode::unusable, fmt::format("there is no token {}, and no record of one", token),
                      "its account was deleted, or the transaction that created it was rolled back");
        }
      });
}

History read_batch_history(db::Connection& connection, std::int64_t batch, const AuditRequest& request) {
  return read_history(connection, request, {}, [&](pqxx::transaction_base& transaction, History& history) {
    const auto found = queue::find_batch(transaction, batch);
    if (!found) {
      throw Error(ExitCode::unusable, fmt::format("there is no record of a batch {}", batch),
                  "older records may have been pruned; mailroom audit --batches lists the last 24 hours");
    }
    history.batch = found;
    add_batch(history.timeline, *found);
    add_deliveries_of(transaction, history.timeline, *found);
    for (const auto& operation : feed::operations_on_tokens(transaction, found->tokens, found->claimed_at)) {
      const auto& cut = operation.cut_batches;
      const bool took_from_it = std::find(cut.begin(), cut.end(), batch) != cut.end();
      if (operation.queue != found->queue || (operation.tokens.empty() && !took_from_it)) continue;
      history.timeline.add(operation);
    }
  });
}

}  // namespace mailroom::audit
