// Gathers the events of one account, token or batch from every table that records some.

#include "audit/history.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>

#include "audit/token_facts.hpp"
#include "audit/trace_ids.hpp"
#include "base/text.hpp"
#include "db/values.hpp"

namespace mailroom {
namespace {

constexpr std::size_t max_reports = 20;

/// Returns the changes of an account that its row dates, or nothing if there is no such account.
std::vector<Event> read_account(pqxx::transaction_base& transaction, std::int64_t account) {
  constexpr std::array kinds{EventKind::created, EventKind::activated, EventKind::suspended,
                             EventKind::restored};
  std::vector<Event> changes;
  for (const auto& row : Connection::execute(transaction, R"(
SELECT id, email, login, status, created_at, activated_at, suspended_at, unsuspended_at
FROM accounts
WHERE id = $1)",
                                             account)) {
    const AccountRecord record{.id = row[0].as<std::int64_t>(),
                               .email = row[1].c_str(),
                               .login = row[2].c_str(),
                               .status = row[3].c_str()};
    for (int i = 0; i < 4; ++i) {
      if (const auto at = optional_moment_in<std::chrono::seconds>(row[4 + i]))
        changes.push_back({kinds.at(static_cast<std::size_t>(i)), *at, record});
    }
  }
  return changes;
}

/// True if `operations` include the change that the account's row dates. The row has the start of the
/// transaction, rounded; the operation has a later time.
bool is_recorded(const std::vector<Operation>& operations, const Event& change) {
  return std::any_of(operations.begin(), operations.end(), [&](const auto& operation) {
    return operation.kind == change.kind && operation.at >= change.at - std::chrono::seconds(1);
  });
}

void add_token_changes(History& history, const TokenFacts& token) {
  if (!token.exists) return;
  const auto add = [&](EventKind kind, Moment at) {
    history.timeline.entries.push_back({kind, at, StoredToken(token)});
  };
  add(EventKind::created, token.created_at);
  if (token.consumed_at) add(EventKind::consumed, *token.consumed_at);
  if (!token.consumed_at && token.expires_at <= history.now) add(EventKind::expired, token.expires_at);
}

void add_deliveries(Timeline& timeline, const std::vector<DeliveryRecord>& deliveries) {
  for (const auto& delivery : deliveries) {
    for (const auto& attempt : delivery.attempts)
      timeline.add(attempt);
    for (const auto& report : delivery.reports)
      timeline.add(report);
  }
}

/// Returns when `tokens` may have been leased: during their lifetimes and, if rewound or replayed, also in
/// the hour after that.
std::vector<TokenSpan> spans_of(const std::vector<TokenFacts>& tokens,
                                const std::vector<Operation>& operations) {
  std::vector<TokenSpan> spans;
  for (const auto& token : tokens) {
    auto life = token_span(token.id, token.created_at, token.expires_at);
    if (token.exists) life.made = token.created_at;
    spans.push_back(life);
    for (const auto& operation : operations) {
      if (operation.is_forward || operation.kind == EventKind::revoked ||
          !contains(operation.tokens, token.id))
        continue;
      spans.push_back({.token = token.id,
                       .since = operation.at,
                       .until = operation.at + std::chrono::hours(1),
                       .made = life.made});
    }
  }
  return spans;
}

void add_skip(Timeline& timeline, const TokenReport& report) {
  const auto& status = report.status;
  if (!status.skip) return;
  timeline.entries.push_back({EventKind::skipped, status.skip->claimed_at,
                              TokenSkip{.token = report.token,
                                        .batch = status.skip->id,
                                        .queue = status.queue,
                                        .reason = status.reason,
                                        .reason_certain = status.reason_certain}});
}

/// True if the token is of the account or the address that was asked for.
bool is_asked_for(const TokenFacts& token, const History& history, const std::string& address) {
  if (history.is_of_account && token.account.id == history.account_id) return true;
  const auto is_it = [&](const std::string& other) { return lower_case(other) == lower_case(address); };
  return !address.empty() &&
         (is_it(token.account.email) || std::ranges::any_of(token.deliveries, [&](const auto& delivery) {
            return is_it(delivery.last().address);
          }));
}

/// The next steps for whoever was asked for. A message that was asked for itself is mailed to all of its
/// recipients.
std::vector<NextStep> steps_of(pqxx::transaction_base& transaction, const History& history,
                               const std::string& address) {
  const auto& first = history.tokens.front();
  if (history.messages.empty() || is_asked_for(first.token, history, address))
    return read_next_steps(transaction, {first}, 1);
  std::vector<TokenReport> of_message;
  std::ranges::copy_if(history.tokens, std::back_inserter(of_message),
                       [&](const auto& report) { return report.token.message == first.token.message; });
  const auto message = std::ranges::find_if(
      history.messages, [&](const auto& summary) { return summary.id == first.token.message; });
  return read_next_steps(transaction, of_message,
                         message == history.messages.end() ? 1 : message->recipients);
}

void add_token_statuses(pqxx::transaction_base& transaction, const AuditRequest& request, History& history,
                        std::vector<TokenFacts> tokens, const std::vector<Operation>& operations,
                        const std::vector<BatchRecord>& batches) {
  std::stable_partition(tokens.begin(), tokens.end(),
                        [&](const auto& token) { return is_asked_for(token, history, request.address); });
  tokens.resize(std::min(tokens.size(), max_reports));
  for (auto& token : tokens) {
    token.operations = operations;
    for (const auto& batch : batches) {
      if (contains(batch.tokens, token.id)) token.batches.push_back(batch);
      if (contains(batch.of_others, token.id)) token.id_was_anothers = true;
    }
  }
  read_token_positions(transaction, request.queues, tokens);
  for (const auto& token : tokens) {
    auto report = report_on(request.only_queue ? in_queue(token, request.queues.front()) : token);
    if (request.only_queue && report.status.outcome == Outcome::not_taken)
      report.status.queue = request.queues.front();
    if (request.queues.size() > 1) report.by_queue = reports_by_queue(token, request.queues);
    if (report.by_queue.empty()) add_skip(history.timeline, report);
    for (const auto& of_queue : report.by_queue)
      add_skip(history.timeline, of_queue);
    history.tokens.push_back(std::move(report));
  }
  history.next = steps_of(transaction, history, request.address);
}

/// True if the batch skipped all of its tokens of `tokens`, and their deliveries say why.
bool is_told_by_deliveries(const BatchRecord& batch, const std::vector<TokenFacts>& tokens) {
  if (!batch.is_skipped()) return false;
  return std::all_of(tokens.begin(), tokens.end(), [&](const auto& token) {
    return !contains(batch.tokens, token.id) ||
           std::any_of(token.deliveries.begin(), token.deliveries.end(),
                       [&](const auto& delivery) { return delivery.queue == batch.queue; });
  });
}

/// Adds the events of `tokens`, newest first, and the statuses of the newest.
void add_tokens(pqxx::transaction_base& transaction, const AuditRequest& request, History& history,
                std::vector<TokenFacts> tokens) {
  if (tokens.empty()) return;
  auto& timeline = history.timeline;
  std::vector<IdRange> ids;
  auto since = history.now;
  for (const auto& token : tokens) {
    ids.push_back({.first = token.id, .end = token.id + 1});
    since = std::min(since, token.created_at);
  }
  const auto operations = operations_on_tokens(transaction, ids, std::max(since, Moment()));
  const auto batches = find_batches(transaction, spans_of(tokens, operations));
  const auto deliveries = find_deliveries(transaction, ids);
  for (auto& token : tokens)
    set_deliveries(token, deliveries);
  std::for_each(tokens.rbegin(), tokens.rend(),
                [&](const auto& token) { add_token_changes(history, token); });
  for (const auto& operation : operations) {
    if (!operation.tokens.empty()) timeline.add(operation);
  }
  for (const auto& token : tokens)
    add_deliveries(timeline, token.deliveries);
  for (const auto& batch : batches) {
    if (batch.tokens.empty()) continue;
    const auto abandonments = abandonments_of(batch);
    timeline.entries.insert(timeline.entries.end(), abandonments.begin(), abandonments.end());
    if (!is_told_by_deliveries(batch, tokens)) timeline.add(batch);
  }
  add_token_statuses(transaction, request, history, std::move(tokens), operations, batches);
}

/// Adds the operations on the token's account during the token's lifetime: a suspension explains why the
/// token was not emitted. created_at may be rounded up.
void add_account_of_token(pqxx::transaction_base& transaction, History& history, const TokenFacts& token) {
  if (!token.exists || token.account.id == 0) return;
  history.account_id = token.account.id;
  if (!token.account.status.empty()) history.account = token.account;
  const Period lifetime{.since = token.created_at - std::chrono::seconds(1),
                        .until = token.expires_at + std::chrono::seconds(1)};
  for (const auto& operation : operations_on_account(transaction, token.account.id)) {
    if (lifetime.has(operation.at)) history.timeline.add(operation);
  }
}

/// Adds each lease of the batch and how it ended.
void add_batch(Timeline& timeline, const BatchRecord& batch) {
  if (batch.is_state_only()) return;
  for (auto& abandonment : abandonments_of(batch)) {
    timeline.add(*abandonment.batch());
    timeline.entries.push_back(std::move(abandonment));
  }
  timeline.add(as_claimed(batch));
  if (!batch.is_open()) timeline.add(batch);
}

/// Adds the outcomes of its tokens that the batch recorded: while it was leased, no other batch of its queue
/// held them.
void add_deliveries_of(pqxx::transaction_base& transaction, Timeline& timeline, const BatchRecord& batch) {
  const auto from = batch.abandoned.empty() ? batch.claimed_at : batch.abandoned.front().claimed_at;
  const auto until = batch.emitted_at.value_or(batch.dead_at.value_or(Moment::max()));
  for (auto& delivery : find_deliveries(transaction, batch.tokens)) {
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
    history.messages.push_back(read_summary_within(transaction, id));
  if (messages.empty()) return;
  for (const auto& operation : operations_on_messages(transaction, messages))
    history.timeline.add(operation);
  auto missing = tokens_of_messages(transaction, messages);
  std::erase_if(missing,
                [&](auto id) { return std::ranges::find(tokens, id, &TokenFacts::id) != tokens.end(); });
  history.tokens_total += static_cast<std::int64_t>(missing.size());
  for (const auto& token : find_tokens(transaction, missing))
    tokens.push_back({token});
  std::ranges::sort(tokens, std::ranges::greater(), &TokenFacts::id);
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
History read(Connection& connection, const AuditRequest& request, const std::vector<std::string>& queues,
             const Fill& fill) {
  return in_one_snapshot(connection, queues, [&](pqxx::transaction_base& transaction, Moment now) {
    History history{.now = now};
    fill(transaction, history);
    add_steps_without_token(history);
    set_trace_ids(transaction, history.tokens);
    history.timeline.arrange(parse_period(request.since, request.until, now), request.limit);
    return history;
  });
}

}  // namespace

History read_account_history(Connection& connection, std::int64_t account,
                             const std::vector<std::int64_t>& messages, const AuditRequest& request) {
  return read(
      connection, request, request.queues, [&](pqxx::transaction_base& transaction, History& history) {
        history.is_of_account = true;
        history.account_id = account;
        const auto operations = operations_on_account(transaction, account);
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
        const auto tokens = find_tokens_of(transaction, account, request.limit);
        history.tokens_total = tokens.total;
        std::vector<TokenFacts> facts;
        for (const auto& token : tokens.newest)
          facts.push_back({token});
        add_messages(transaction, history, messages, facts);
        add_tokens(transaction, request, history, std::move(facts));
      });
}

History read_message_history(Connection& connection, const std::vector<std::int64_t>& messages,
                             const AuditRequest& request) {
  return read(connection, request, request.queues,
              [&](pqxx::transaction_base& transaction, History& history) {
                std::vector<TokenFacts> facts;
                add_messages(transaction, history, messages, facts);
                add_tokens(transaction, request, history, std::move(facts));
              });
}

History read_token_history(Connection& connection, std::int64_t token, const AuditRequest& request) {
  return read(
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

History read_batch_history(Connection& connection, std::int64_t batch, const AuditRequest& request) {
  return read(connection, request, {}, [&](pqxx::transaction_base& transaction, History& history) {
    const auto found = find_batch(transaction, batch);
    if (!found) {
      throw Error(ExitCode::unusable, fmt::format("there is no record of a batch {}", batch),
                  "older records may have been pruned; mailroom audit --batches lists the last 24 hours");
    }
    history.batch = found;
    add_batch(history.timeline, *found);
    add_deliveries_of(transaction, history.timeline, *found);
    for (const auto& operation : operations_on_tokens(transaction, found->tokens, found->claimed_at)) {
      const auto& cut = operation.cut_batches;
      const bool took_from_it = std::find(cut.begin(), cut.end(), batch) != cut.end();
      if (operation.queue != found->queue || (operation.tokens.empty() && !took_from_it)) continue;
      history.timeline.add(operation);
    }
  });
}

}  // namespace mailroom
